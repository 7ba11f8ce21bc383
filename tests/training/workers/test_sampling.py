"""Samples never hold up a run: a stop is seen between tokens, their time is limited, broken weights are no crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
RECIPE = ROOT / "tests" / "helpers" / "recipes" / "diverging"


def sampling(folder: Path, mode: str = "single", world: int = 1, **settings: Any) -> RunStore:
    """A run that writes a text at each evaluation."""
    values = {"steps": 40, "eval_every": 10, "lr": 1.0, **settings}
    return make_run(folder / "run", write_text(folder / "text.txt"), mode, world, recipe=str(RECIPE), **values)


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("fsdp", 2)])
def test_a_stop_is_seen_between_two_tokens(mode: str, world: int, tmp_path: Path) -> None:
    """The text would take ten minutes, the stop may take two."""
    store = sampling(tmp_path, mode, world, options={"sample_tokens": 6000, "token_s": 0.1}, sample_share=100.0)
    assert host(store, stop_at=10, timeout_s=200.0) == 0
    state = store.state()
    assert (state.state, state.error) == ("stopped", None) and state.step >= 10
    assert state.checkpoint is not None, "everything is saved"
    assert all(line["cut"] and len(line["text"]) < 600 for line in lines(store, "sample"))


def test_samples_that_would_take_too_much_time_are_left_out_but_the_last(tmp_path: Path) -> None:
    store = sampling(tmp_path, options={"sample_tokens": 22, "token_s": 0.1}, sample_share=5.0)
    assert host(store) == 0
    assert [(line["step"], len(line["text"])) for line in lines(store, "sample")] == [(10, 22), (40, 22)]
    (said,) = lines(store, "sample_left_out")
    assert said["step"] == 20 and "5 %" in said["text"]


def test_quick_samples_are_always_taken(tmp_path: Path) -> None:
    store = sampling(tmp_path, options={"sample_tokens": 2}, sample_share=0.0)
    assert host(store) == 0
    assert [line["step"] for line in lines(store, "sample")] == [10, 20, 30, 40]


def test_a_sample_of_broken_weights_says_so(tmp_path: Path) -> None:
    options = {"sample_tokens": 2, "draws": True, "bad": "weights", "bad_from": 30}
    store = sampling(tmp_path, options=options)
    assert host(store) == 1
    texts = {line["step"]: line["text"] for line in lines(store, "sample")}
    assert texts[10] == texts[20] == "xx"
    assert texts[30] == "(No text: the weights are not finite.)"
    assert store.state().error is not None and "diverged" in store.state().error["title"]
