"""Reader of the run folders: looks again and again, and reads only the files that changed."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from app.runs.run_order import ordered
from app.runs.run_row import RunRow, is_live
from core.errors import StateFileError
from core.files.atomic import explain
from core.files.stamp import Stamp, stamp_of
from core.recipes.main_metric import MainMetrics
from core.run_folder.notes import NOTES, RunNotes
from core.run_folder.record import RunRecord, notes_of, remote_of, settings_of
from core.run_folder.remote_run import FILE_NAME, RemoteRun
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore, read_entry

# Folders that are looked into at each scan though nothing says that they changed; the others' turn comes later.
#
# A file that is replaced (as hosts and notes do) changes its folder's time. One that is written in place does not.
SWEEP: Final = 32
# A folder that changed so recently is looked into again: within a clock tick, two changes have the same time.
RECENT_S: Final = 3.0
# How long a scan reads settings; the rest is read by the next ones, so that the list is never old.
SETTINGS_BUDGET_S: Final = 0.2


@dataclass(slots=True)
class _Folder:
    """Facts about one folder.

    Attributes:
        changed_ns: Its own time, when it was looked into.
    """

    changed_ns: int = 0
    row: RunRow | None = None
    state: tuple[Stamp | None, RunState | None, str] = (None, None, "")
    notes: tuple[Stamp | None, RunNotes] = field(default_factory=lambda: (None, RunNotes()))
    settings: tuple[Stamp | None, Mapping[str, Any]] | None = None
    remote: tuple[Stamp | None, RemoteRun | None] = (None, None)


class RunScanner:
    """Reads the state and the notes of every run in a folder. For one thread.

    Attributes:
        wants_settings: Read the settings too, from the next scan on; a thousand of them take a second the first time.
    """

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.wants_settings = False
        self.has_settings = False
        self._known: dict[str, _Folder] = {}
        self._turn = 0
        self._metrics = MainMetrics()
        self._rows: list[RunRow] = []

    def scan(self) -> list[RunRow]:
        """Return every run, live ones first, then the newest; a damaged one has a reason."""
        found = self._folders()
        before = [known.row for known in self._known.values()]
        self._known = {folder: self._known.get(folder) or _Folder() for folder in found}
        recent_ns = time.time_ns() - int(RECENT_S * 1e9)
        first, self._turn = self._turn, self._turn + SWEEP
        if self._turn >= len(found):
            self._turn = 0
        for number, (folder, changed_ns) in enumerate(found.items()):
            known = self._known[folder]
            is_same = known.changed_ns == changed_ns < recent_ns and not first <= number < first + SWEEP
            if not is_same or (known.row is not None and is_live(known.row.entry)):
                self._look(folder, known, changed_ns)
        if self.wants_settings:
            self._read_settings()
        now = [known.row for known in self._known.values()]
        if len(now) != len(before) or not all(map(operator.is_, now, before)):
            self._rows = ordered(row for row in now if row is not None)
        return list(self._rows)

    def _folders(self) -> dict[str, int]:
        folders: dict[str, int] = {}
        try:
            with os.scandir(self.runs_dir) as found:
                for item in found:
                    try:
                        if item.is_dir():
                            # Windows' listing has a folder's time from before its last change; its own is right.
                            own = Path(item.path).stat() if os.name == "nt" else item.stat()
                            folders[item.path] = own.st_mtime_ns
                    except FileNotFoundError:
                        continue  # it was removed in this moment
                    except OSError:
                        folders[item.path] = 0  # listed with the reason
        except OSError:
            return {}
        return folders

    def _look(self, folder: str, known: _Folder, changed_ns: int) -> None:
        """Reads the changed files of a folder; its row stays the same object where nothing changed."""
        known.changed_ns = changed_ns
        try:
            entry = self._entry(folder, known)
        except OSError as error:
            entry = RunEntry(Path(folder), None, explain(error, f"{folder} could not be read").cause)
        if entry is None:
            known.row = None
            return
        if known.settings is not None and known.settings[0] != stamp_of(RunStore(entry.path).run_toml):
            # Replaced, as when a run is resumed with another setting.
            known.settings = None
        settings = known.settings[1] if known.settings else {}
        record = RunRecord(entry, self._notes(folder, known), settings, self._remote(folder, known))
        if known.row is None or known.row.record != record:
            known.row = self._row(record)

    def _row(self, record: RunRecord) -> RunRow:
        state = record.entry.state
        return RunRow(record, self._metrics.of(state.recipe if state is not None else ""))

    def _entry(self, folder: str, known: _Folder) -> RunEntry | None:
        store = RunStore(Path(folder))
        stamp = stamp_of(store.state_json)
        if stamp is None:
            return read_entry(store.dir)
        if known.state[0] != stamp:
            try:
                known.state = (stamp, store.stored_state(), "")
            except StateFileError as error:
                known.state = (stamp, None, error.cause)
        _, state, problem = known.state
        return RunEntry(store.dir, None if state is None else store.seen(state), problem or None)

    def _notes(self, folder: str, known: _Folder) -> RunNotes:
        stamp = stamp_of(Path(folder, NOTES))
        if stamp is None:
            known.notes = (None, RunNotes())
        elif known.notes[0] != stamp:
            known.notes = (stamp, notes_of(Path(folder)))
        return known.notes[1]

    def _remote(self, folder: str, known: _Folder) -> RemoteRun | None:
        stamp = stamp_of(Path(folder, FILE_NAME))
        if known.remote[0] != stamp:
            known.remote = (stamp, None if stamp is None else remote_of(Path(folder)))
        return known.remote[1]

    def _read_settings(self) -> None:
        """Reads unknown settings until the budget of this scan is used."""
        end = time.monotonic() + SETTINGS_BUDGET_S
        self.has_settings = False
        for folder, known in self._known.items():
            if known.row is None or known.settings is not None:
                continue
            if time.monotonic() > end:
                return
            known.settings = (stamp_of(RunStore(Path(folder)).run_toml), settings_of(Path(folder)))
            known.row = self._row(replace(known.row.record, settings=known.settings[1]))
        self.has_settings = True
