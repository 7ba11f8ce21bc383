"""Reader of the run folders: looks again and again, and reads only the files that changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from app.models.run_order import ordered
from app.models.run_row import RunRow
from core.errors import StateFileError
from core.run_folder.notes import NOTES, RunNotes
from core.run_folder.record import RunRecord, notes_of, settings_of
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore

Stamp: TypeAlias = tuple[int, int] | None
"""A file's time and size; None where there is none."""


class RunScanner:
    """Reads the state and the notes of every run in a folder. For one thread.

    Attributes:
        wants_settings: Read the settings too, from the next scan on; a thousand of them take a second the first time.
    """

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.wants_settings = False
        self._states: dict[str, tuple[Stamp, RunState | None, str]] = {}
        self._notes: dict[str, tuple[Stamp, RunNotes]] = {}
        self._settings: dict[str, tuple[Stamp, Mapping[str, Any]]] = {}

    def scan(self) -> list[RunRow]:
        """Every run, live ones first, then the newest; a damaged one says why, other folders are passed over."""
        try:
            with os.scandir(self.runs_dir) as found:
                folders = [item.path for item in found if item.is_dir()]
        except OSError:
            folders = []
        rows = [RunRow(record) for folder in folders if (record := self._record(folder)) is not None]
        self._states = {folder: self._states[folder] for folder in folders if folder in self._states}
        self._notes = {folder: self._notes[folder] for folder in folders if folder in self._notes}
        self._settings = {folder: self._settings[folder] for folder in folders if folder in self._settings}
        return ordered(rows)

    def _record(self, folder: str) -> RunRecord | None:
        entry = self._entry(folder)
        return None if entry is None else RunRecord(entry, self._notes_of(folder), self._settings_of(folder))

    def _entry(self, folder: str) -> RunEntry | None:
        store = RunStore(Path(folder))
        stamp = stamp_of(store.state_json)
        if stamp is None:
            if not store.run_toml.exists():
                return None
            return RunEntry(store.dir, None, "Its state.json is missing or cannot be read.")
        seen = self._states.get(folder)
        if seen is None or seen[0] != stamp:
            try:
                seen = (stamp, store.stored_state(), "")
            except StateFileError as error:
                seen = (stamp, None, error.cause)
            self._states[folder] = seen
        _, state, problem = seen
        return RunEntry(store.dir, None if state is None else store.seen(state), problem or None)

    def _notes_of(self, folder: str) -> RunNotes:
        stamp = stamp_of(Path(folder, NOTES))
        if stamp is None:
            return RunNotes()
        seen = self._notes.get(folder)
        if seen is None or seen[0] != stamp:
            seen = self._notes[folder] = (stamp, notes_of(Path(folder)))
        return seen[1]

    def _settings_of(self, folder: str) -> Mapping[str, Any]:
        if not self.wants_settings:
            return {}
        stamp = stamp_of(RunStore(Path(folder)).run_toml)
        seen = self._settings.get(folder)
        if seen is None or seen[0] != stamp:
            seen = self._settings[folder] = (stamp, settings_of(Path(folder)))
        return seen[1]


def stamp_of(path: Path) -> Stamp:
    """When a file was written and how long it is: as long as that stays, it need not be read again."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
