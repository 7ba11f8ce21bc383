"""How an attempt ended: its exit code, and what a person is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.store import Checkpoint
from core.host.outcome import Outcome, diverged, exit_code, stopped_short, with_unkillable
from core.protocol.messages import Position

ERROR = {"title": "A title", "cause": "A cause.", "next_step": "A step."}


def checkpoint(number: int, step: int, ranks: int = 2, bad: tuple[int, ...] = ()) -> Checkpoint:
    positions = {rank: Position(step, step, [], []) for rank in range(ranks)}
    return Checkpoint(number, Path(), step, 0.0, ranks, "ddp", None, positions, (), diverged=bad)


@pytest.mark.parametrize(
    ("outcome", "hurried", "code"),
    [
        (Outcome("finished"), False, 0),
        (Outcome("stopped"), True, 0),
        (Outcome("stopped", ERROR), True, 130),
        (Outcome("stopped", ERROR), False, 1),
        (Outcome("finished", ERROR), False, 1),
        (Outcome("failed", ERROR), False, 1),
        (Outcome("failed", ERROR), True, 1),
        (Outcome("failed", ERROR, usage=True), False, 2),
        (Outcome("not_started", ERROR, usage=True), False, 2),
        (Outcome("not_started", ERROR), False, 1),
    ],
)
def test_the_exit_code_follows_from_the_outcome(outcome: Outcome, hurried: bool, code: int) -> None:
    assert exit_code(outcome, hurried) == code


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (
            (12, checkpoint(2, 10), True),
            "The run was ended immediately, as requested. Checkpoint 2 holds step 10; it stood at step 12.",
        ),
        (
            (12, None, False, "The disk is full."),
            "The run was ended at the stop limit, before its last checkpoint was saved. "
            "No checkpoint was saved; it stood at step 12. The disk is full.",
        ),
    ],
)
def test_a_stop_that_lost_something_says_what(arguments: tuple[Any, ...], cause: str) -> None:
    assert stopped_short(*arguments)["cause"] == cause


@pytest.mark.parametrize(
    ("bad", "good", "cause", "step"),
    [
        ((0, 1), None, "The weights are not finite", "and start the run again."),
        ((1,), (3, 30), "The weights on CPU 1 are not", "and resume: the run continues from checkpoint 3, step 30."),
    ],
)
def test_divergence_names_ranks_and_a_way_back(
    bad: tuple[int, ...], good: tuple[int, int] | None, cause: str, step: str
) -> None:
    told = diverged(checkpoint(5, 50, bad=bad), checkpoint(*good) if good else None, ["CPU 0", "CPU 1"])
    assert cause in told["cause"] and "at step 50 (checkpoint 5)" in told["cause"]
    assert told["next_step"].endswith(step) and "--lr" in told["next_step"]
    assert told["window_step"].endswith(step) and "--" not in told["window_step"]


def test_processes_that_do_not_exit_are_named_beside_the_error() -> None:
    assert with_unkillable(ERROR, (4, 5)) == {
        **ERROR,
        "cause": "A cause. Process 4, 5 did not exit, even when killed (the driver may hang).",
    }
    alone = with_unkillable(None, (4,))
    assert alone["title"] and alone["cause"].startswith("Process 4 did") and alone["next_step"]
