"""Texts of a row in the list of runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from app.models.run_row import detail_text, lasted_s, progress, sentence, tooltip, value_text
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

BEGAN = 1_780_000_000.0
DDP = {"mode": "ddp", "world_size": 2, "devices": ("GPU-1", "GPU-2")}
NB = "\N{NO-BREAK SPACE}"


def record(name: str = "", **fields: object) -> RunRecord:
    state = dataclasses.replace(RunState("r", "MiniGPT", created=BEGAN, updated=BEGAN + 250), **fields)
    return RunRecord(RunEntry(Path("/runs/r"), state), RunNotes(name=name))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": "training", "step": 50, "total_steps": 100, **DDP}, f"50{NB}% · DDP × 2 · 1 h 00 m"),
        ({"state": "training", "step": 1502, **DDP}, "step 1,502 · DDP × 2 · 1 h 00 m"),
        ({"state": "starting"}, "starting · 1 h 00 m"),
        ({"state": "stopped", "step": 64, "total_steps": 100, **DDP}, f"stopped at 64{NB}% · DDP × 2 · 4 m"),
        ({"state": "finished", "mode": "single", "devices": ("cpu:0",)}, "1 CPU · 4 m"),
        ({"state": "finished", "updated": BEGAN + 59.4, **DDP}, "DDP × 2 · 59 s"),
        ({"state": "finished", "attempt": 2, **DDP}, "DDP × 2"),
        ({"state": "failed", "error": {"title": "CPU 1", "cause": "line 6:\nNaN"}}, "line 6: NaN"),
    ],
)
def test_the_second_line(fields: dict[str, object], text: str) -> None:
    assert detail_text(record(**fields), BEGAN + 3600) == text


def test_a_name_of_the_users_own_leaves_room_for_the_date() -> None:
    assert detail_text(record("night", state="finished"), BEGAN + 10 * 86_400).endswith("4 m · " + _day(BEGAN))
    assert detail_text(record(state="finished"), BEGAN + 10 * 86_400) == "4 m"


def test_a_run_that_cannot_be_read_says_why() -> None:
    damaged = RunRecord(RunEntry(Path("/runs/half"), None, "Its state.json is cut off."))
    assert detail_text(damaged) == "Its state.json is cut off."
    assert sentence(damaged) == "half, damaged. Its state.json is cut off."
    assert value_text(damaged.entry) == "–" and progress(damaged.entry) is None


def test_the_time_of_a_resumed_run_is_not_known() -> None:
    state = RunState("r", created=BEGAN, updated=BEGAN + 60, state="finished")
    assert lasted_s(state) == 60.0
    assert lasted_s(state.replace(attempt=2)) is None
    assert lasted_s(state.replace(state="training"), BEGAN + 90) == 90.0


def test_the_tooltip_has_tags_note_and_folder() -> None:
    noted = dataclasses.replace(record("night"), notes=RunNotes("night", "Half the rate.", ("lr", "v2"), pinned=True))
    assert tooltip(noted).splitlines() == ["night, starting, pinned", "Tags: lr, v2", "Half the rate.", "r"]


def _day(unix_s: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))
