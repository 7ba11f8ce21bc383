"""Progress in the task bar: of which run, how far, and how it looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.state.task_progress import NO_PROGRESS, TaskProgress, TaskState, task_progress
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
