"""Progress in the task bar: of which run, how far, and how it looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.outside.task_progress import (
    IDLE,
    LONGEST_TIP,
    NO_PROGRESS,
    TaskProgress,
    TaskState,
    task_progress,
    tray_status,
)
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = pytest.mark.windows


def entry(name: str, state: str = "training", **changes: Any) -> RunEntry:
    return RunEntry(Path(name), RunState(**{"run_id": name, "state": state, "step": 1, "total_steps": 4, **changes}))


def test_the_shown_run_while_it_is_live_else_the_newest_live_one() -> None:
    runs = [entry("old", created=1.0, step=1), entry("new", created=2.0, step=2), entry("done", "finished", step=4)]
    assert task_progress(runs, Path("old")).share == 0.25
    assert task_progress(runs, Path("done")).share == 0.5
    assert task_progress(runs, None).share == 0.5
    assert task_progress(runs[2:], Path("done")) == NO_PROGRESS
    assert task_progress([RunEntry(Path("x"), None, "It is damaged.")], Path("x")) == NO_PROGRESS


@pytest.mark.parametrize(
    ("changes", "look"),
    [
        ({}, TaskState.NORMAL),
        ({"state": "starting", "step": 0}, TaskState.BUSY),
        ({"state": "starting", "step": 2}, TaskState.BUSY),
        ({"total_steps": None}, TaskState.BUSY),
        ({"state": "stopping"}, TaskState.PAUSED),
        ({"trouble": {"title": "The disk is full"}}, TaskState.ERROR),
    ],
)
def test_how_it_looks(changes: dict[str, Any], look: TaskState) -> None:
    assert task_progress([entry("a", **changes)], None).state is look


def test_only_a_change_that_can_be_seen_is_one() -> None:
    first, second = (task_progress([entry("a", step=step, total_steps=100_000)], None) for step in (50_000, 50_001))
    assert first == second == TaskProgress(TaskState.NORMAL, 0.5)


def tray(*entries: RunEntry) -> tuple[TaskState, str]:
    status = tray_status(entries, lambda path: path.name)
    return status.look, status.tip


def test_the_tray_names_the_newest_live_run_and_counts_them() -> None:
    assert tray_status([entry("a", "finished"), RunEntry(Path("x"), None, "damaged")], lambda path: path.name) == IDLE
    assert tray(entry("a", step=45, total_steps=100)) == (TaskState.NORMAL, "a: training, 45 %")
    assert tray(entry("a", created=1.0), entry("b", "starting", created=2.0, step=0))[1] == "2 runs: b: starting"
    assert len(tray(entry("long " * 60), entry("b"))[1]) <= LONGEST_TIP


def test_the_tray_s_look_is_the_most_urgent_state() -> None:
    stopping, trouble = entry("a", "stopping"), entry("c", created=9.0, trouble={"title": "The disk is full"})
    assert tray(stopping)[0] is TaskState.PAUSED
    assert tray(stopping, entry("b"))[0] is TaskState.NORMAL
    assert tray(stopping, entry("b"), trouble) == (TaskState.ERROR, "3 runs: c: needs you, 25 %")
