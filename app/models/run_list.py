"""The list of runs: live ones on top, then by date. A thread looks every second at what changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.bridge import Feed, Send
from core.errors import StateFileError
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore

REFRESH_S: Final = 1.0
ENTRY: Final = Qt.ItemDataRole.UserRole
"""The role of a row's `RunEntry`; others say its name, and a sentence for tooltips and screen readers."""
Index = QModelIndex | QPersistentModelIndex


class RunScanner:
    """Reads the run folders again and again, but only those `state.json` that changed since the last time."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self._seen: dict[str, tuple[tuple[int, int], RunState | None, str]] = {}

    def scan(self) -> list[RunEntry]:
        """Every run, live ones first, then the newest; a damaged one says why, other folders are passed over."""
        try:
            with os.scandir(self.runs_dir) as found:
                folders = [item.path for item in found if item.is_dir()]
        except OSError:
            folders = []
        entries = [entry for folder in folders if (entry := self._entry(folder)) is not None]
        self._seen = {folder: self._seen[folder] for folder in folders if folder in self._seen}
        return sorted(entries, key=_order)

    def _entry(self, folder: str) -> RunEntry | None:
        store = RunStore(Path(folder))
        try:
            status = store.state_json.stat()
        except OSError:
            if not store.run_toml.exists():
                return None
            return RunEntry(store.dir, None, "Its state.json is missing or cannot be read.")
        stamp = (status.st_mtime_ns, status.st_size)
        seen = self._seen.get(folder)
        if seen is None or seen[0] != stamp:
            try:
                seen = (stamp, store.stored_state(), "")
            except StateFileError as error:
                seen = (stamp, None, error.cause)
            self._seen[folder] = seen
        _, state, problem = seen
        return RunEntry(store.dir, None if state is None else store.seen(state), problem or None)


def is_live(entry: RunEntry) -> bool:
    """Whether a host is at work on it just now."""
    return entry.state is not None and entry.state.is_live


def progress(entry: RunEntry) -> float | None:
    """How much of the steps is done, 0..1."""
    if entry.state is None or not entry.state.total_steps:
        return None
    return min(1.0, entry.state.step / entry.state.total_steps)


def reason(entry: RunEntry) -> str:
    """Why a run failed, was interrupted or cannot be read; empty for all others."""
    if entry.state is None:
        return entry.problem or "It cannot be read."
    if entry.state.state in ("failed", "interrupted") and entry.state.error:
        return entry.state.error.get("cause", "")
    return ""


def _order(entry: RunEntry) -> tuple[bool, float, str]:
    return (not is_live(entry), -entry.state.created if entry.state else 0.0, entry.path.name)


class RunListModel(QAbstractListModel):
    """Qt's view of the entries; selections stay on their run when the order changes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[RunEntry] = []

    def entries(self) -> list[RunEntry]:
        """The rows, from the top."""
        return list(self._entries)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name, a sentence, or the entry itself (`ENTRY`)."""
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry = self._entries[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return (entry.state.name if entry.state else "") or entry.path.name
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return _sentence(entry)
        return entry if role == ENTRY else None

    def show(self, entries: list[RunEntry]) -> None:
        """Takes over a new list: rows that went are removed, new ones inserted, moved ones moved, changed ones told."""
        wanted = {entry.path for entry in entries}
        for row in reversed(range(len(self._entries))):
            if self._entries[row].path not in wanted:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._entries[row]
                self.endRemoveRows()
        there = {entry.path for entry in self._entries}
        for row, entry in enumerate(entries):
            if entry.path not in there:
                at = min(row, len(self._entries))
                self.beginInsertRows(QModelIndex(), at, at)
                self._entries.insert(at, entry)
                self.endInsertRows()
        if [entry.path for entry in self._entries] != [entry.path for entry in entries]:
            self._reorder(entries)
        for row, entry in enumerate(entries):
            if self._entries[row] != entry:
                self._entries[row] = entry
                self.dataChanged.emit(self.index(row), self.index(row))

    def _reorder(self, entries: list[RunEntry]) -> None:
        self.layoutAboutToBeChanged.emit()
        row_of = {entry.path: row for row, entry in enumerate(entries)}
        before = self.persistentIndexList()
        after = [self.index(row_of[self._entries[index.row()].path]) for index in before]
        kept = {entry.path: entry for entry in self._entries}
        self._entries = [kept[entry.path] for entry in entries]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()


def _sentence(entry: RunEntry) -> str:
    state = entry.state
    name = (state.name if state else "") or entry.path.name
    done = progress(entry)
    parts = [name, entry.word]
    if done is not None:
        parts.append(f"{done:.0%}")
    if state is not None and state.loss is not None:
        parts.append(f"loss {state.loss:.3g}")
    return ", ".join(parts) + (f". {reason(entry)}" if reason(entry) else "")


class RunList(Feed):
    """Keeps a `RunListModel` current from a thread of its own.

    Signals:
        listed: The list was read; its argument is the entries. Emitted when something changed, and the first time.
    """

    listed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model = RunListModel(self)
        self._soon = threading.Event()

    def open(self, runs_dir: Path) -> None:
        """Lists the runs in a folder from now on."""
        scanner, soon = RunScanner(runs_dir), self._soon

        def work(stopping: threading.Event, send: Send) -> None:
            sent: list[RunEntry] | None = None
            while not stopping.is_set():
                soon.clear()
                entries = scanner.scan()
                if entries != sent and send(entries):
                    sent = entries
                soon.wait(REFRESH_S)

        self._start("run list", work)

    def refresh(self) -> None:
        """Looks again now, for example after a run was started."""
        self._soon.set()

    def close(self, *, wait: bool = True) -> None:
        """Ends the thread."""
        if self._worker is not None:
            self._worker.stopping.set()
        self._soon.set()
        super().close(wait=wait)

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self.model.show(item)
            self.listed.emit(item)
