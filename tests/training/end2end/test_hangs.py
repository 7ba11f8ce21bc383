"""Ranks of real runs that hang: the one that holds up the others is named, and the run ends or restarts as asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

RECIPE = str(Path(__file__).parents[2] / "helpers" / "recipes" / "hanging")
# On a crowded machine a rank may be late once more: so the first alert and the first restart are looked at.
LIMIT_S = 4.0


def make_hanging(folder: Path, mode: str, how: str = "forward", **settings: Any) -> RunStore:
    """A run of 40 steps; rank 1 hangs in its 30th, once."""
    text = folder.parent / "text.txt"
    if not text.exists():
        write_text(text)
    options = {"hang_rank": 1, "hang_how": how, "hang_batch": 30}
    if how == "not":
        options = {}
    values = {
        "steps": 40,
        "epochs": 3,
        "checkpoint_every_steps": 4,
        "zero_stage": 2,
        "zero_engine": "torch",
        **settings,
    }
    return make_run(folder, text, mode, 2, recipe=RECIPE, options=options, hang_timeout_s=LIMIT_S, **values)


def log_of(store: RunStore, rank: int) -> str:
    return (store.logs / f"rank{rank}.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("mode", "how", "function"),
    [
        ("ddp", "collective", "sleep_in_backward"),
        ("ddp", "busy", "loop_for_ever"),
        ("zero", "collective", "sleep_in_backward"),
        ("fsdp", "forward", "sleep_in_forward"),
        ("independent", "forward", "sleep_in_forward"),
    ],
)
def test_the_device_that_holds_up_the_others_is_named_and_all_restart(
    mode: str, how: str, function: str, tmp_path: Path
) -> None:
    store = make_hanging(tmp_path / "hung", mode, how, hang_policy="restart")
    assert host(store) == 0, log_of(store, 1)
    alert, *_ = lines(store, "alert")
    assert (alert["kind"], alert["ranks"], alert["certain"]) == ("hang", [1], mode != "independent"), alert
    assert function in alert["places"]["1"]
    assert f"in {function}" in log_of(store, 1)
    restart, *_ = lines(store, "restart")
    assert (restart["number"], restart["of"], restart["title"]) == (1, 3, "CPU 1: The process hangs")
    undisturbed = make_hanging(tmp_path / "undisturbed", mode, "not")
    assert host(undisturbed) == 0
    assert curve(store) == curve(undisturbed)
    assert store.model.read_bytes() == undisturbed.model.read_bytes()


def test_a_rank_that_holds_the_interpreter_lock_is_named(tmp_path: Path) -> None:
    store = make_hanging(tmp_path / "locked", "ddp", "lock", hang_policy="restart")
    assert host(store) == 0
    alert, *_ = lines(store, "alert")
    assert (alert["ranks"], alert["certain"]) == ([1], True) and "does not answer" in alert["places"]["1"]
