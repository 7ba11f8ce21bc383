"""The list of runs as Qt models see it, kept current by a thread that looks every second at what changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal

from app.runs.run_details import CurveRead, RunDetails, Version, version_of
from app.runs.run_order import BEST, NEWEST, ordered
from app.runs.run_row import NO_CURVE, RunRow, description, is_live, value_text
from app.runs.run_scanner import RunScanner
from app.threads.bridge import Feed, Send
from core.formatting import UNKNOWN
from core.metrics.curve import MetricCurve
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.run_filter import Term
from core.run_folder.store import RunEntry

REFRESH_S: Final = 1.0
# The role of a row's `RunRow`; others say its name, and what tooltips and screen readers say.
ROW: Final = Qt.ItemDataRole.UserRole
# The role of a row's `MetricCurve`; to ask for it has it read.
CURVE: Final = Qt.ItemDataRole.UserRole + 1
# From the first of the curves that arrived since the last sort.
SORT_AFTER_MS: Final = 200
# A live run's curve is not read more often.
CURVE_AGAIN_S: Final = 5.0
Index = QModelIndex | QPersistentModelIndex


class RunListModel(QAbstractListModel):
    """Qt's view of the runs.

    Signals:
        curve_wanted: A `RunRow` that is in sight and has no curve yet, or an old one.
        all_curves_wanted: The order asks for the main metric of every run, in sight or not.
        arranged: The rows were filtered and ordered again.
        renamed: A run's folder and the name that was typed into its row.
    """

    curve_wanted = Signal(object)
    all_curves_wanted = Signal()
    arranged = Signal()
    renamed = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: list[RunRow] = []
        self._texts: dict[Path, tuple[RunRow, str]] = {}
        self._rows: list[RunRow] = []
        self._order = NEWEST
        self._terms: tuple[Term, ...] = ()
        self._curves: dict[Path, MetricCurve] = {}
        self._sizes: dict[Path, int] = {}
        self._shown: tuple[Path, float] | None = None
        self._wanted: dict[Path, tuple[Version, float]] = {}
        self._sort_due = QTimer(self, singleShot=True, interval=SORT_AFTER_MS)
        self._sort_due.timeout.connect(self._sort)

    def entries(self) -> list[RunEntry]:
        return [row.entry for row in self._all]

    def names(self) -> dict[Path, str]:
        return {row.record.path: row.record.label for row in self._all}

    def machines(self) -> dict[Path, str]:
        return {row.path: row.record.machine for row in self._all if row.record.machine}

    def name_of(self, run_dir: Path) -> str:
        record = self.record(run_dir)
        return run_dir.name if record is None else record.label

    def rows(self) -> list[RunRow]:
        return list(self._rows)

    def record(self, run_dir: Path) -> RunRecord | None:
        return next((row.record for row in self._all if row.path == run_dir), None)

    def tags(self) -> list[str]:
        return sorted({tag for row in self._all for tag in row.record.notes.tags})

    def records(self) -> list[RunRecord]:
        return [row.record for row in self._all]

    def values(self) -> dict[Path, str]:
        texts = {row.path: value_text(self._seen(row), self._curves.get(row.path, NO_CURVE)) for row in self._all}
        return {path: text for path, text in texts.items() if text != UNKNOWN}

    def row_number(self, path: Path) -> int | None:
        return next((number for number, row in enumerate(self._rows) if row.path == path), None)

    def set_filter(self, terms: tuple[Term, ...]) -> None:
        if terms != self._terms:
            self._terms = terms
            self._arrange()

    def set_order(self, order: str) -> None:
        self._order = order
        if order == BEST:
            self.all_curves_wanted.emit()
        self._sort()

    def _sort(self) -> None:
        self._all = ordered(self._all, self._order, self._curves)
        self._arrange()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name, a description, the row itself (`ROW`) or its curve (`CURVE`)."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._seen(self._rows[index.row()])
        if role == ROW:
            return row
        if role == CURVE:
            self._want_curve(row)
            return self._curves.get(row.path, NO_CURVE)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.record.label
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return description(row, self._curves.get(row.path, NO_CURVE), self._sizes.get(row.path, 0))
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.isValid() else flags

    def setData(self, index: Index, value: Any, _role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Ask for another name; the row has it once it is written."""
        self.renamed.emit(self._rows[index.row()].path, value)
        return True

    def show(self, rows: Sequence[RunRow]) -> None:
        self._all = ordered(rows, self._order, self._curves)
        if any(len(known) > len(rows) for known in (self._curves, self._wanted, self._texts)):
            paths = {row.path for row in rows}
            self._texts = {path: text for path, text in self._texts.items() if path in paths}
            self._curves = {path: curve for path, curve in self._curves.items() if path in paths}
            self._sizes = {path: size for path, size in self._sizes.items() if path in paths}
            self._wanted = {path: wanted for path, wanted in self._wanted.items() if path in paths}
        self._arrange()

    def set_notes(self, notes: Mapping[Path, RunNotes]) -> None:
        """Shows what was just written, before the folder is read again."""
        changed = []
        for row in self._all:
            known = notes.get(row.path)
            changed.append(row if known is None else replace(row, record=replace(row.record, notes=known)))
        self.show(changed)

    def remove(self, paths: Collection[Path]) -> None:
        self.show([row for row in self._all if row.path not in paths])

    def show_value(self, path: Path, value: float) -> None:
        """Shows the last value of the shown run, which its state has seconds later."""
        if self._shown != (path, value):
            self._shown = (path, value)
            number = self.row_number(path)
            if number is not None:
                self.dataChanged.emit(self.index(number), self.index(number), [ROW])

    def _seen(self, row: RunRow) -> RunRow:
        return replace(row, shown=self._shown[1]) if self._shown is not None and row.path == self._shown[0] else row

    def set_curve(self, read: CurveRead) -> None:
        self._sizes[read.path] = read.size_bytes
        if self._curves.get(read.path) != read.curve:
            self._curves[read.path] = read.curve
            if self._order == BEST and not self._sort_due.isActive():
                self._sort_due.start()
            number = self.row_number(read.path)
            if number is not None:
                self.dataChanged.emit(self.index(number), self.index(number), [CURVE])

    def _want_curve(self, row: RunRow) -> None:
        version, (wanted, at) = version_of(row), self._wanted.get(row.path, (None, 0.0))
        now = time.monotonic()
        if version != wanted and (wanted is None or now - at > CURVE_AGAIN_S or not is_live(row.entry)):
            self._wanted[row.path] = (version, now)
            self.curve_wanted.emit(row)

    def _arrange(self) -> None:
        """Shows the rows that the filter lets through; a reset where they are others, or in another order."""
        wanted = [row for row in self._all if self._holds(row)]
        if [row.path for row in wanted] != [row.path for row in self._rows]:
            self.beginResetModel()
            self._rows = wanted
            self.endResetModel()
        else:
            for number, row in enumerate(wanted):
                if self._rows[number] is not row and self._rows[number] != row:
                    self._rows[number] = row
                    self.dataChanged.emit(self.index(number), self.index(number))
        self.arranged.emit()

    def _holds(self, row: RunRow) -> bool:
        """True if the filter lets a row through; its searched text is made once per row."""
        if not self._terms:
            return True
        known = self._texts.get(row.path)
        if known is None or known[0] is not row:
            known = self._texts[row.path] = (row, row.record.searched_text)
        return all(term.holds(row.record, known[1]) for term in self._terms)


class RunList(Feed):
    """Keeps a `RunListModel` current from a thread of its own.

    Signals:
        listed: The list was read; its argument is the entries. Emitted when something changed, and after
            `refresh`.
    """

    listed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model = RunListModel(self)
        self.details = RunDetails(self)
        self.model.curve_wanted.connect(self.details.want_curve)
        self.model.all_curves_wanted.connect(self.details.want_all_curves)
        self.details.curve_read.connect(self.model.set_curve)
        self._soon = threading.Event()
        self._scanner: RunScanner | None = None

    def open(self, runs_dir: Path) -> None:
        scanner, soon = RunScanner(runs_dir), self._soon
        self._scanner = scanner

        def work(stopping: threading.Event, send: Send) -> None:
            sent: list[RunRow] | None = None
            while not stopping.is_set():
                # After a refresh it is sent even if it is as before: the model may have been ahead of the folder.
                is_asked = soon.is_set()
                soon.clear()
                rows = scanner.scan()
                if (is_asked or rows != sent) and send(rows):
                    sent = rows
                if scanner.has_settings or not scanner.wants_settings:
                    soon.wait(REFRESH_S)

        self._start("run list", work)
        self.details.open()

    def refresh(self) -> None:
        """Looks again now, for example after a run was started."""
        self._soon.set()

    def want_settings(self) -> None:
        if self._scanner is not None and not self._scanner.wants_settings:
            self._scanner.wants_settings = True
            self.refresh()

    def close(self, *, wait: bool = True) -> None:
        super().close(wait=False)
        self._soon.set()
        self.details.close(wait=wait)
        super().close(wait=wait)

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self.model.show(item)
            self.details.set_runs(item)
            self.listed.emit([row.entry for row in item])
