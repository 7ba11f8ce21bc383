"""What `rankdeck recipes new` writes trains at once: in every mode, on the text one has."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.recipes.scaffold import new_recipe
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("independent", 2), ("zero", 2), ("fsdp", 2)])
def test_it_trains_in_every_mode(tmp_path: Path, mode: str, world: int) -> None:
    recipe = new_recipe("mine", tmp_path / "recipes")
    text = write_text(tmp_path / "text.txt")
    store = make_run(
        tmp_path / "run", text, mode, world, recipe=str(recipe), steps=5, eval_every=5, lr=0.05, options={}
    )
    assert host(store, timeout_s=150) == 0, store.state().error
    losses = curve(store)
    assert sorted(losses) == [1, 2, 3, 4, 5]
    assert losses[5] < losses[1]
    assert lines(store, "eval")[-1]["val_loss"] < 5.6  # the logarithm of 256 is 5.55
    assert store.model.is_file()
