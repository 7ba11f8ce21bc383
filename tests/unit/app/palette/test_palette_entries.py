"""Entries of the command palette: titles, what else finds them, and why one cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QAction

from app.palette.palette_controller import command_entry
from app.palette.palette_entries import (
    PaletteEntry,
    best_entries,
    field_entries,
    run_entries,
)
from core.config.run_config import FIELD_BY_NAME
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

pytestmark = pytest.mark.windows


def best(query: str, entries: list[PaletteEntry]) -> PaletteEntry | None:
    return next(iter(best_entries(entries, query, 1)), None)


def test_a_run_is_found_by_name_tag_note_folder_and_state() -> None:
    state = RunState(run_id="minigpt-1", state="failed", loss=1.82)
    path = Path("runs/minigpt-1")
    notes = RunNotes(name="base", tags=("night",), note="Twice the width.")
    (entry,) = run_entries([RunRecord(RunEntry(path, state), notes)], {path: "1.82"})
    assert (entry.title, entry.detail, entry.target) == ("base", "failed · 1.82", path)
    assert all(best(word, [entry]) is entry for word in ("base", "night", "twice", "minigpt-1", "failed"))
    assert best("day", [entry]) is None


def test_a_run_that_cannot_be_read_is_listed_too() -> None:
    (entry,) = run_entries([RunRecord(RunEntry(Path("runs/x"), None, "It is damaged."))], {})
    assert entry.title == "x" and entry.detail


@pytest.mark.usefixtures("qapp")
def test_a_command_has_its_key_and_the_reason_while_it_is_unavailable() -> None:
    action = QAction("R&esume && go…")
    action.setShortcut("Ctrl+R")
    action.setProperty("why_not", "Rankdeck is starting a run.")
    entry = command_entry("resume", action)
    assert entry.title == "Resume & go…" and entry.detail == "Ctrl+R"
    assert entry.spoken == "Resume & go…, command, Ctrl+R. Unavailable: Rankdeck is starting a run."


def test_settings_are_found_by_label_name_and_help() -> None:
    entries = field_entries({name: FIELD_BY_NAME[name] for name in ("lr", "steps")}, {"devices": "Devices"})
    assert [entry.title for entry in entries] == ["Devices", FIELD_BY_NAME["lr"].label, FIELD_BY_NAME["steps"].label]
    found = best("learning rate", entries)
    assert found is not None and found.target == "lr"
    assert best("lr", entries) == found


def test_the_best_come_first_and_what_cannot_be_used_last() -> None:
    titles = ("Stop", "Save and stop", "Nonstop", "Export", "Stop all runs")
    entries = [PaletteEntry("Command", title, title, also="stop" if title == "Export" else "") for title in titles]
    entries.append(PaletteEntry("Command", "Stop now", "x", why_not="No run is selected."))
    found = [entry.title for entry in best_entries(entries, "stop", 9)]
    assert found == ["Stop", "Stop all runs", "Save and stop", "Nonstop", "Export", "Stop now"]
    assert [entry.title for entry in best_entries(entries, "runs st", 9)] == ["Stop all runs"]
    assert best_entries(entries, "stop zebra", 9) == [] and len(best_entries(entries, "", 2)) == 2
