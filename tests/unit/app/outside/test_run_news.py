"""Run news: which runs are told of, and in which sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.outside.run_news import LiveRuns, run_news
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = pytest.mark.windows
FULL_DISK = {"title": "The disk is full", "cause": "2 MB are free", "next_step": "Free some space."}


def record(state: str, name: str = "base", **changes: Any) -> RunRecord:
    return RunRecord(RunEntry(Path(name), RunState(run_id=name, state=state, **changes)), RunNotes(name=name))


def test_only_runs_that_ended_before_the_window_s_eyes_are_told() -> None:
    live = LiveRuns()
    assert live.changed([record("finished", "old"), record("training", "new")]) == []
    assert live.changed([record("finished", "old"), record("stopping", "new")]) == []
    ended = record("finished", "new")
    assert live.changed([record("finished", "old"), ended]) == [ended]
    assert live.changed([record("finished", "old"), ended]) == []


@pytest.mark.parametrize(("state", "is_told"), [("failed", True), ("interrupted", True), ("stopped", False)])
def test_a_run_that_a_person_stopped_is_not_told(state: str, is_told: bool) -> None:
    live = LiveRuns()
    live.changed([record("training")])
    assert bool(live.changed([record(state)])) is is_told


def test_a_run_that_cannot_be_saved_is_told_once() -> None:
    live = LiveRuns()
    live.changed([record("training")])
    assert live.changed([record("training", trouble=FULL_DISK)])
    assert not live.changed([record("training", trouble=FULL_DISK)])
    assert not live.changed([record("training")])
    assert live.changed([record("training", trouble=FULL_DISK)])


def test_a_failed_run_says_why_and_what_next() -> None:
    news = run_news(record("failed", error=FULL_DISK))
    assert news is not None and news.kind == "error" and news.title == "base failed."
    assert news.text == "The disk is full. 2 MB are free. Free some space."


def test_trouble_asks_for_a_person() -> None:
    news = run_news(record("training", trouble=FULL_DISK))
    assert news is not None and news.title == "base needs you." and news.kind == "warning"
    assert run_news(record("training")) is None
    assert run_news(RunRecord(RunEntry(Path("x"), None, "It is damaged."))) is None
