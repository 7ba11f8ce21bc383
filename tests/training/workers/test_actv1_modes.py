"""ACT-v1 in every mode on two real processes, and stopped and resumed under the real host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import ConfigError
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe
from core.recipes.manifest import apply_recipe
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text
from tests.helpers.rank_processes import run_rank_processes

torch = pytest.importorskip("torch", reason="trains for real")
pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_rank_processes("tests.training.workers.actv1_rank", 2, tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize(
    "way", ["ddp, static graph", "zero 1", "zero 2", "zero 3", "fsdp", "ddp, checkpointed", "fsdp, checkpointed"]
)
def test_every_mode_trains_what_ddp_trains(two: list[dict[str, Any]], way: str) -> None:
    """Also where every rank computes all segments, since each holds a part of the weights only."""
    for rank in two:
        ddp, found = rank["ddp"], rank[way]
        assert found["losses"] == pytest.approx(ddp["losses"], abs=1e-4)
        assert found["steps"] == pytest.approx(ddp["steps"], abs=1e-6)
        assert found["evaluation"] == pytest.approx(ddp["evaluation"], abs=1e-4)
        assert found["text"] == ddp["text"]


def test_ranks_halt_by_themselves_and_evaluate_together(two: list[dict[str, Any]]) -> None:
    assert two[0]["ddp"]["steps"] != two[1]["ddp"]["steps"], "each rank's tokens take their own time"
    assert any(1 < steps < 3 for steps in two[0]["ddp"]["steps"])
    assert two[0]["ddp"]["evaluation"] == two[1]["ddp"]["evaluation"]
    assert two[0]["independent"]["losses"] != two[1]["independent"]["losses"]
    assert two[0]["single"] == two[1]["single"]


TINY = {
    "h_layers": 1, "l_layers": 1, "n_head": 2, "n_embd": 16, "halt_max_steps": 3, "halt_exploration": 0.3,
    "step_price": 0.02, "sample_tokens": 8, "warmup_steps": 2, "val_batches": 2,
}  # fmt: skip


def test_stopped_and_resumed_it_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Halting draws numbers at every step: they too go on where they stood."""
    text = write_text(tmp_path / "text.txt", 20_000)
    settings: dict[str, Any] = {"recipe": "actv1", "options": TINY, "steps": 24, "lr": 0.01}
    whole = make_run(tmp_path / "whole", text, "ddp", 2, **settings)
    assert host(whole) == 0
    parted = make_run(tmp_path / "parted", text, "ddp", 2, **settings)
    assert host(parted, stop_at=6) == 0
    stopped = max(curve(parted))
    assert stopped < 24 and host(parted) == 0
    for name in ("loss", "halt_steps_mean", "q_loss", "objective", "accuracy"):
        assert curve(parted, name) == curve(whole, name)
    steps = curve(whole, "halt_steps_mean")
    assert len(steps) == 24 and all(1 <= value <= 3 for value in steps.values())
    assert len({line["halt_steps_mean"] for line in lines(whole, "step") if line["step"] == 20}) == 2
    last = [lines(store, "eval")[-1] for store in (whole, parted)]
    assert last[0]["val_loss"] == last[1]["val_loss"] < curve(whole)[1] - 0.5
    assert last[0]["val_halt_steps_mean"] == last[1]["val_halt_steps_mean"]
    assert lines(whole, "sample")[-1]["text"] == lines(parted, "sample")[-1]["text"] != ""


def test_one_step_of_thought_under_the_real_host(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 8_000)
    options = {**TINY, "halt_max_steps": 1}
    store = make_run(tmp_path / "run", text, "fsdp", 2, recipe="actv1", options=options, steps=4, eval_every=4)
    assert host(store) == 0
    assert curve(store, "halt_steps_mean") == dict.fromkeys(range(1, 5), 1.0)


# --- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field", "in_cause"),
    [
        ({"n_embd": 60, "n_head": 4}, "n_embd", "not divisible by 8"),
        ({"halt_max_steps": 0}, "halt_max_steps", "below 1"),
        ({"halt_exploration": 1.5}, "halt_exploration", "above 1"),
        ({"tokenizer": "words"}, "tokenizer", "byte"),
        ({"halt_min_steps": 2}, "halt_min_steps", "no option"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_starts(
    options: dict[str, Any], field: str, in_cause: str
) -> None:
    recipe = get_recipe("actv1")
    with pytest.raises(ConfigError) as caught:
        check_by_recipe(apply_recipe(RunConfig(recipe="actv1", options=options), recipe), recipe)
    assert caught.value.field == field and in_cause in str(caught.value) and caught.value.next_step


def test_too_little_text_is_said_by_the_run(tmp_path: Path) -> None:
    text = tmp_path / "short.txt"
    text.write_text("short", encoding="utf-8")
    store = make_run(tmp_path / "run", text, "single", 1, recipe="actv1", options=TINY, steps=2)
    assert host(store) == 2
    error = store.state().error
    assert error is not None and "too small" in error["title"] and error["next_step"]
