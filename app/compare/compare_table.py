"""Table of a comparison: results, and the settings and environment that differ, with a column for each run."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QFont, QGuiApplication, QPalette, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QPushButton, QTableView

from app.style.fonts import tabular
from app.style.palette import rank_colour
from app.style.tones import blend, tone
from app.widgets.build import lay_column, lay_row, muted_label, named
from app.widgets.card import Card
from core.compare.comparison import Comparison
from core.compare.results import Row

LABEL_LETTERS: Final = 36
RUN_LETTERS: Final = 28
ROW_GAP: Final = 12
TINT: Final = 0.12
SWATCH: Final = (10, 10)
Index = QModelIndex | QPersistentModelIndex


class CompareTable(QAbstractTableModel):
    """Rows of a `Comparison` under their headings, either those that differ or all.

    Attributes:
        tint: The ground of a cell that differs from the first run's.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.comparison = Comparison()
        self._shows_all = False
        self._rows: list[str | Row] = []
        self.tint = QBrush()
        self.swatches: list[QPixmap] = []

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


class CompareTableView(Card):
    """A card with the table, and under it how much is the same."""

    def __init__(self) -> None:
        super().__init__()
        self.model = CompareTable(self)
        self.model.modelReset.connect(self._lay_columns)
        self.view = named(QTableView(), "Results, settings and environment of the compared runs")
        self.view.setModel(self.model)
        self.view.setFont(tabular(self.view.font()))
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setShowGrid(False)
        self.view.setTabKeyNavigation(False)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.view.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.view.setWordWrap(False)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.verticalHeader().hide()
        self.view.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + ROW_GAP)
        header = self.view.horizontalHeader()
        header.setSectionsClickable(False)
        header.setHighlightSections(False)
        header.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setMinimumSectionSize(RUN_LETTERS * self.fontMetrics().averageCharWidth())
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.same = muted_label(wraps=False)
        self.all = QPushButton("Show &all")
        self.all.setCheckable(True)
        self.all.setToolTip("Also show the settings and the environment that are the same")
        self.all.toggled.connect(self._on_all_toggled)
        foot = lay_row(None, self.same, self.all, None, spacing=8, margins=(12, 0, 8, 0))
        lay_column(self, self.view, foot, spacing=4, margins=(1, 4, 1, 6), grow=self.view)

    @property
    def needed_height(self) -> int:
        rows = self.model.rowCount() * self.view.verticalHeader().defaultSectionSize()
        return rows + self.view.horizontalHeader().sizeHint().height() + self.all.sizeHint().height() + 24

    def show_comparison(self, comparison: Comparison) -> None:
        place = self.view.verticalScrollBar().value()
        self.model.show_comparison(comparison)
        self.same.setText(comparison.same_text)
        self._dress()
        self.view.verticalScrollBar().setValue(place)

    def copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.model.comparison.as_tabs(all_rows=self.all.isChecked()))

    def _on_all_toggled(self, on: bool) -> None:
        self.model.show_all(on)
        self.all.setText("Show &differences only" if on else "Show &all")
        self.same.setVisible(not on)

    def _lay_columns(self) -> None:
        self.view.clearSpans()
        for row in self.model.headings():
            self.view.setSpan(row, 0, 1, self.model.columnCount())
        if self.model.columnCount():
            self.view.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
            self.view.setColumnWidth(0, LABEL_LETTERS * self.fontMetrics().averageCharWidth())

    def _dress(self) -> None:
        palette = self.palette()
        self.model.tint = QBrush(blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), TINT))
        self.model.swatches = [QPixmap(*SWATCH) for _ in range(self.model.columnCount() - 1)]
        for number, swatch in enumerate(self.model.swatches):
            swatch.fill(rank_colour(number, palette))
        self.view.viewport().update()
        self.view.horizontalHeader().viewport().update()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "all"):
            self._dress()
