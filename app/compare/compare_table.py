"""The table of a comparison, for a view: headings, and under each its rows with a column a run."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QFont

from core.compare.comparison import Comparison
from core.compare.results import Row

Index = QModelIndex | QPersistentModelIndex


class CompareTable(QAbstractTableModel):
    """Rows of a `Comparison`, those that differ or all.

    Attributes:
        comparison: What is shown.
        tint: The ground of a cell that differs from the first run's.
        swatches: The colour of each run, for its heading.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.comparison = Comparison()
        self._shows_all = False
        self._rows: list[str | Row] = []
        self.tint = QBrush()
        self.swatches: list[QColor] = []

    def show_comparison(self, comparison: Comparison) -> None:
        """Shows another comparison; where only values are new, a view keeps its place."""
        old, self.comparison = self.comparison, comparison
        rows = self._find_rows()
        if old.labels == comparison.labels and _names(rows) == _names(self._rows):
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, self.columnCount() - 1))
            return
        self._reset(rows)

    def show_all(self, on: bool) -> None:
        """Shows every row, or only results and what differs."""
        self._shows_all = on
        self._reset(self._find_rows())

    def _find_rows(self) -> list[str | Row]:
        found: list[str | Row] = []
        for heading, rows in self.comparison.sections(all_rows=self._shows_all):
            found += [heading, *rows]
        return found

    def _reset(self, rows: list[str | Row]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def headings(self) -> list[int]:
        return [number for number, row in enumerate(self._rows) if isinstance(row, str)]

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else 1 + len(self.comparison.labels)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 < section <= len(self.comparison.labels):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.comparison.labels[section - 1]
        if role == Qt.ItemDataRole.DecorationRole and section <= len(self.swatches):
            return self.swatches[section - 1]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A heading, a row's name, or a run's value; the best one is bold."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if isinstance(row, str):
            return _heading(row, column, role)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return row.texts[column - 1] if column else row.label
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(row, column)
        is_result = row in self.comparison.results
        if role == Qt.ItemDataRole.BackgroundRole and column and not is_result and column - 1 in row.changed:
            return self.tint
        return _bold() if role == Qt.ItemDataRole.FontRole and column - 1 in row.best else None

    def _spoken(self, row: Row, column: int) -> str:
        if not column:
            return row.label
        best = ", best" if column - 1 in row.best else ""
        return f"{self.comparison.labels[column - 1]}, {row.label}: {row.texts[column - 1]}{best}"


def _names(rows: list[str | Row]) -> list[str]:
    return [row if isinstance(row, str) else row.name for row in rows]


def _heading(text: str, column: int, role: int) -> Any:
    if column:
        return None
    if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
        return text
    return _bold() if role == Qt.ItemDataRole.FontRole else None


def _bold() -> QFont:
    font = QFont()
    font.setBold(True)
    return font
