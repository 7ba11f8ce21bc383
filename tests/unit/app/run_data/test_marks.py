"""Marks: what happened to a run, at which step and when."""

from __future__ import annotations

from typing import Any

from app.run_data.marks import Mark, marks_of


def launch(ts: float, resumed_from: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "launch", "ts": ts, "mode": "ddp", "world_size": 2, "resumed_from": resumed_from, **fields}


def commit(ts: float, step: int, number: int) -> dict[str, Any]:
    return {"event": "commit", "ts": ts, "step": step, "checkpoint": number}


def test_a_first_launch_is_no_mark_and_each_checkpoint_is_one() -> None:
    marks = marks_of([launch(1.0), commit(5.0, 50, 1), {"event": "eval", "ts": 6.0, "step": 60}, commit(9.0, 100, 2)])
    assert marks == [Mark("checkpoint", 50, 5.0, "checkpoint 1"), Mark("checkpoint", 100, 9.0, "checkpoint 2")]


def test_a_resumed_run_says_what_is_other_than_before() -> None:
    events = [
        launch(1.0),
        launch(2.0, {"0": 40, "1": 40}),
        launch(3.0, {"0": 60}, mode="zero", world_size=4),
        launch(4.0, {"0": 70}, mode="zero", world_size=1),
    ]
    assert [(mark.step, mark.text) for mark in marks_of(events)] == [
        (40, "resumed"),
        (60, "resumed · ZeRO · 4 devices"),
        (70, "resumed · 1 device"),
    ]


def test_checkpoints_of_steps_that_are_trained_again_are_left_out() -> None:
    marks = marks_of([launch(1.0), commit(5.0, 50, 1), commit(9.0, 100, 2), launch(20.0, {"0": 50})])
    assert [(mark.kind, mark.step) for mark in marks] == [("checkpoint", 50), ("resumed", 50)]


def test_a_script_says_its_step_later_and_damaged_events_are_passed_over() -> None:
    events: list[dict[str, Any]] = [
        launch(1.0),
        {"event": "resumed", "ts": 30.0, "resumed_from": {"0": 7}},
        {"event": "launch", "ts": None, "resumed_from": {"0": 9}},
        {"event": "launch", "ts": 40.0, "resumed_from": {"0": "x"}},
        {"event": "commit", "ts": 41.0, "step": None},
        {"event": "commit", "ts": 42.0, "step": 12, "generation": 3},
    ]
    assert [(mark.step, mark.text) for mark in marks_of(events)] == [(7, "resumed"), (12, "checkpoint 3")]
