"""Texts of a row in the list of runs."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from app.runs.run_row import (
    RunRow,
    day_text,
    description,
    detail_text,
    lasted_s,
    progress,
    title_text,
    value_text,
)
from core.metrics.curve import MetricCurve
from core.recipes.heroes import Hero
from core.recipes.main_metric import metric_of
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.remote_run import RemoteRun
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

BEGAN = 1_780_000_000.0
DDP = {"mode": "ddp", "world_size": 2, "devices": ("GPU-1", "GPU-2")}
NB = "\N{NO-BREAK SPACE}"


def record(notes_name: str = "", **fields: object) -> RunRecord:
    state = dataclasses.replace(RunState("r", "MiniGPT", created=BEGAN, updated=BEGAN + 250), **fields)
    return RunRecord(RunEntry(Path("/runs/r"), state), RunNotes(name=notes_name))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": "training", "step": 50, "total_steps": 100, **DDP}, f"DDP × 2 · 50{NB}% · 1 h 00 m"),
        ({"state": "training", "step": 1502, **DDP}, "DDP × 2 · step 1,502 · 1 h 00 m"),
        ({"state": "starting"}, "starting · 1 h 00 m"),
        ({"state": "stopped", "step": 64, "total_steps": 100, **DDP}, f"DDP × 2 · stopped at 64{NB}% · 4 m · TIME"),
        ({"state": "finished", "mode": "single", "devices": ("cpu:0",)}, "1 CPU · 4 m · TIME"),
        ({"state": "finished", "updated": BEGAN + 59.4, **DDP}, "DDP × 2 · 59 s · TIME"),
        ({"state": "finished", "attempt": 2, **DDP}, "DDP × 2 · TIME"),
        ({"state": "failed", "error": {"title": "CPU 1", "cause": "line 6:\nNaN"}}, "line 6: NaN"),
    ],
)
def test_the_second_line(fields: dict[str, object], text: str) -> None:
    assert detail_text(record(**fields), BEGAN + 60) == text.replace("1 h 00 m", "1 m").replace("TIME", _time(BEGAN))


@pytest.mark.parametrize(
    ("begun", "now", "text"),
    [
        ((2026, 6, 10, 9, 5), (2026, 6, 10, 23, 59), "09:05"),
        ((2026, 6, 9, 23, 59), (2026, 6, 10, 0, 1), "yesterday"),
        ((2026, 5, 31, 8, 0), (2026, 6, 1, 7, 0), "yesterday"),
        ((2026, 6, 8, 12, 0), (2026, 6, 10, 12, 0), "8 Jun"),
        ((2025, 12, 31, 12, 0), (2026, 1, 1, 12, 0), "yesterday"),
        ((2025, 12, 24, 12, 0), (2026, 1, 1, 12, 0), "24 Dec 2025"),
    ],
)
def test_the_day_is_short(begun: tuple[int, ...], now: tuple[int, ...], text: str) -> None:
    assert day_text(_unix_s(*begun), _unix_s(*now)) == text
    assert day_text(0.0) == ""


def test_a_name_of_its_own_leaves_devices_and_date_to_the_second_line() -> None:
    assert title_text(record(**DDP)) == "MiniGPT"
    assert record(**DDP).label.startswith("MiniGPT · DDP × 2 · ")
    assert title_text(record("night")) == "night"
    assert title_text(record(name="")) == title_text(RunRecord(RunEntry(Path("/runs/r"), None))) == "r"


def test_the_value_is_that_of_the_main_metric() -> None:
    curve = MetricCurve((1.0, 2.0), 487.2, best_low=3.0, best_high=491.0)
    assert value_text(RunRow(record(loss=1.8312))) == "1.83"
    ppo = RunRow(record(loss=-0.02, state="finished"), metric_of([Hero("episode_return", "Return", better="higher")]))
    assert value_text(ppo) == "–" and value_text(ppo, curve) == "487"
    assert "Return 487, best evaluation 491" in description(ppo, curve).splitlines()


def test_a_run_that_cannot_be_read_says_why() -> None:
    damaged = RunRecord(RunEntry(Path("/runs/half"), None, "Its state.json is cut off."))
    assert detail_text(damaged) == "Its state.json is cut off."
    assert description(RunRow(damaged)).splitlines() == ["half", "Damaged: Its state.json is cut off.", "half"]
    assert value_text(RunRow(damaged)) == "–" and progress(damaged.entry) is None


def test_the_time_of_a_resumed_run_is_what_it_trained() -> None:
    state = RunState("r", created=BEGAN, updated=BEGAN + 60, state="finished")
    assert lasted_s(state) == 60.0
    assert lasted_s(state.replace(attempt=2)) is None  # by a version that did not count
    assert lasted_s(state.replace(attempt=2, trained_s=20.0)) == 20.0
    assert lasted_s(state.replace(state="training"), BEGAN + 90) == 90.0
    assert lasted_s(state.replace(state="training"), BEGAN + 86_400) == 60.0, "the clocks of two machines differ"


def test_the_tooltip_has_tags_note_and_folder() -> None:
    noted = dataclasses.replace(record("night"), notes=RunNotes("night", "Half the rate.", ("lr", "v2"), pinned=True))
    lines = description(RunRow(noted)).splitlines()
    assert lines[0] == "night" and lines[1].startswith("Starting") and lines[2].startswith("Started ")
    assert lines[3:] == ["Pinned", "Tags: lr, v2", "Half the rate.", "r"]
    assert description(RunRow(noted), size_bytes=3_400_000).endswith("\nr · 3.4 MB")
    long = dataclasses.replace(noted, notes=RunNotes(note="x" * 5000))
    assert len(description(RunRow(long))) < 600


def test_a_run_on_another_machine_is_marked() -> None:
    there = dataclasses.replace(record(state="finished", **DDP), remote=RemoteRun("gpubox", "/runs/r"))
    assert detail_text(there).startswith("DDP × 2 · gpubox · 4 m")
    assert "On gpubox" in description(RunRow(there)).splitlines()
    back = dataclasses.replace(there, remote=RemoteRun("gpubox", "/runs/r", is_there=False))
    assert "gpubox" not in detail_text(back) and "Was on gpubox before" in description(RunRow(back)).splitlines()
    assert (there.value("machine"), back.value("machine")) == ("gpubox", None)


def _time(unix_s: float) -> str:
    return time.strftime("%H:%M", time.localtime(unix_s))


def _unix_s(*parts: int) -> float:
    year, month, day, hour, minute = parts
    return time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))
