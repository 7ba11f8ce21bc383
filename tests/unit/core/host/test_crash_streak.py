"""When a run on several machines that crashes is given up, and what is said then."""

from __future__ import annotations

import dataclasses

import pytest

from core.config import RunConfig
from core.host.failures import CrashStreak, RankFailure, crash_limit

pytestmark = pytest.mark.windows

SEGFAULT = RankFailure(1, 0.0, "CPU 1 on node2", step=12, returncode=-11)
KILLED = RankFailure(0, 0.0, "CPU 0 on node1", step=12, returncode=-9)
ERROR = {"title": "T", "cause": "The process on CPU 1 crashed.", "next_step": "Look at logs/rank-1.log.", "log": "l"}


def test_crashes_at_one_place_are_counted() -> None:
    streak = CrashStreak()
    for number in range(1, 5):
        streak = streak.after(SEGFAULT, checkpoint=2)
        assert streak.number == number
    assert streak.number > crash_limit(RunConfig()) == 3


@pytest.mark.parametrize(("step", "checkpoint"), [(13, 2), (12, 3)])
def test_a_new_step_or_a_new_checkpoint_begins_a_new_count(step: int, checkpoint: int) -> None:
    streak = CrashStreak().after(SEGFAULT, 2).after(SEGFAULT, 2)
    streak = streak.after(dataclasses.replace(SEGFAULT, step=step), checkpoint)
    assert streak.number == 1
    assert streak.after(dataclasses.replace(SEGFAULT, step=10), checkpoint).number == 2, "made before"


def test_a_run_without_a_step_or_a_checkpoint_is_counted_too() -> None:
    first = dataclasses.replace(KILLED, step=0)
    assert CrashStreak().after(first, None).after(first, None).number == 2


def test_the_error_says_which_devices_how_they_ended_and_how_often() -> None:
    streak = CrashStreak()
    for failure in (SEGFAULT, KILLED, SEGFAULT, SEGFAULT):
        streak = streak.after(failure, None)
    error = streak.explain(ERROR)
    assert error["title"] == "The run crashed 4 times without a new step"
    assert error["cause"].startswith(ERROR["cause"])
    counted = "3 times CPU 1 on node2: crashed: segmentation fault (SIGSEGV); once CPU 0 on node1: killed ("
    assert counted in error["cause"] and error["cause"].endswith("(SIGKILL).")
    assert error["next_step"].endswith(ERROR["next_step"]) and error["log"] == "l"


def test_restarts_that_the_user_has_set_are_given() -> None:
    assert crash_limit(RunConfig(max_restarts=7)) == 7
