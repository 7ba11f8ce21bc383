"""The table of a comparison, for a view: headings, and under each its rows with a column a run."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QFont

from core.compare.comparison import Comparison
from core.compare.row import Row

Index = QModelIndex | QPersistentModelIndex


class CompareTable(QAbstractTableModel):
    """Rows of a `Comparison`, those that differ or all.

    Attributes:
        tint: The ground of a cell that differs from the first run's.
        swatches: What stands before each run's name in the heading.
    """

    def __init__(self, comparison: Comparison, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._comparison = comparison
        self._rows: list[str | Row] = []
        self.tint = QBrush()
        self.swatches: list[Any] = []
        self.show_all(False)

    def show_all(self, on: bool) -> None:
        """Shows every row, or only results and what differs."""
        self.beginResetModel()
        self._rows = []
        for heading, rows in self._comparison.sections(all_rows=on):
            self._rows += [heading, *rows]
        self.endResetModel()

    def headings(self) -> list[int]:
        """The rows that hold a heading alone."""
        return [number for number, row in enumerate(self._rows) if isinstance(row, str)]

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else 1 + len(self._comparison.labels)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Over each column its run's name."""
        if orientation != Qt.Orientation.Horizontal or not 0 < section <= len(self._comparison.labels):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self._comparison.labels[section - 1]
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
        is_result = row in self._comparison.results
        if role == Qt.ItemDataRole.BackgroundRole and column and not is_result and column - 1 in row.changed:
            return self.tint
        return _bold() if role == Qt.ItemDataRole.FontRole and column - 1 in row.best else None

    def _spoken(self, row: Row, column: int) -> str:
        if not column:
            return row.label
        best = ", best" if column - 1 in row.best else ""
        return f"{self._comparison.labels[column - 1]}, {row.label}: {row.texts[column - 1]}{best}"


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
