"""The list of runs as Qt models see it, kept current by a thread that looks every second at what changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.bridge import Feed, Send
from app.models.run_order import NEWEST, ordered
from app.models.run_row import RunRow, sentence, tooltip
from app.models.run_scanner import RunScanner
from core.run_folder.record import RunRecord
from core.run_folder.run_filter import Term
from core.run_folder.store import RunEntry

REFRESH_S: Final = 1.0
ROW: Final = Qt.ItemDataRole.UserRole
"""The role of a row's `RunRow`; others say its name, and a sentence for tooltips and screen readers."""
Index = QModelIndex | QPersistentModelIndex


class RunListModel(QAbstractListModel):
    """Qt's view of the runs; selections stay on their run when the order changes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: list[RunRow] = []
        self._rows: list[RunRow] = []
        self._order = NEWEST
        self._terms: tuple[Term, ...] = ()

    def entries(self) -> list[RunEntry]:
        """Every run, also those that are not shown."""
        return [row.entry for row in self._all]

    def names(self) -> dict[Path, str]:
        """What each run is called, by its folder."""
        return {row.record.path: row.record.label for row in self._all}

    def rows(self) -> list[RunRow]:
        """The rows that are shown, from the top."""
        return list(self._rows)

    def record(self, run_dir: Path) -> RunRecord | None:
        """What is known of the run in a folder; None before it was listed."""
        return next((row.record for row in self._all if row.path == run_dir), None)

    def records(self) -> list[RunRecord]:
        """Every run as a filter sees it."""
        return [row.record for row in self._all]

    def set_filter(self, terms: tuple[Term, ...]) -> None:
        """Shows only the runs for which all terms hold."""
        self._terms = terms
        self._arrange()

    def set_order(self, order: str) -> None:
        """Shows them in one of `ORDERS`."""
        self._order = order
        self._arrange()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name, a sentence, or the row itself (`ROW`)."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.record.label
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return sentence(row.record)
        return tooltip(row.record) if role == Qt.ItemDataRole.ToolTipRole else None

    def show(self, rows: Sequence[RunRow]) -> None:
        """Takes over what was read; every run is in it."""
        self._all = list(rows)
        self._arrange()

    def _arrange(self) -> None:
        """Removes rows that went, inserts new ones, moves those that moved, and tells of those that changed."""
        found = [row for row in self._all if all(term.holds(row.record) for term in self._terms)]
        wanted = ordered(found, self._order)
        self._remove_all_but({row.path for row in wanted})
        self._insert(wanted)
        if [row.path for row in self._rows] != [row.path for row in wanted]:
            self._reorder(wanted)
        for number, row in enumerate(wanted):
            if self._rows[number] is not row and self._rows[number] != row:
                self._rows[number] = row
                self.dataChanged.emit(self.index(number), self.index(number))

    def _remove_all_but(self, wanted: set[Path]) -> None:
        end = len(self._rows)
        while end:  # from the end, each block of neighbours at once
            if self._rows[end - 1].path in wanted:
                end -= 1
                continue
            start = end - 1
            while start and self._rows[start - 1].path not in wanted:
                start -= 1
            self.beginRemoveRows(QModelIndex(), start, end - 1)
            del self._rows[start:end]
            self.endRemoveRows()
            end = start

    def _insert(self, wanted: Sequence[RunRow]) -> None:
        there = {row.path for row in self._rows}
        start = 0
        while start < len(wanted):
            end = start
            while end < len(wanted) and wanted[end].path not in there:
                end += 1
            if end > start:
                at = min(start, len(self._rows))
                self.beginInsertRows(QModelIndex(), at, at + end - start - 1)
                self._rows[at:at] = wanted[start:end]
                self.endInsertRows()
            start = end + 1

    def _reorder(self, wanted: Sequence[RunRow]) -> None:
        self.layoutAboutToBeChanged.emit()
        row_of = {row.path: number for number, row in enumerate(wanted)}
        before = self.persistentIndexList()
        after = [self.index(row_of[self._rows[index.row()].path]) for index in before]
        kept = {row.path: row for row in self._rows}
        self._rows = [kept[row.path] for row in wanted]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()


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
        self._scanner: RunScanner | None = None

    def open(self, runs_dir: Path) -> None:
        """Lists the runs in a folder from now on."""
        scanner, soon = RunScanner(runs_dir), self._soon
        self._scanner = scanner

        def work(stopping: threading.Event, send: Send) -> None:
            sent: list[RunRow] | None = None
            while not stopping.is_set():
                soon.clear()
                rows = scanner.scan()
                if rows != sent and send(rows):
                    sent = rows
                soon.wait(REFRESH_S)

        self._start("run list", work)

    def refresh(self) -> None:
        """Looks again now, for example after a run was started."""
        self._soon.set()

    def want_settings(self) -> None:
        """Reads the runs' settings too from now on, because a filter asks for them."""
        if self._scanner is not None and not self._scanner.wants_settings:
            self._scanner.wants_settings = True
            self.refresh()

    def close(self, *, wait: bool = True) -> None:
        """Ends the thread."""
        if self._worker is not None:
            self._worker.stopping.set()
        self._soon.set()
        super().close(wait=wait)

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self.model.show(item)
            self.listed.emit([row.entry for row in item])
