"""Table of a comparison: results, and the settings that differ, with a column for each run."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QBrush, QGuiApplication, QPalette, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QPushButton, QTableWidget, QTableWidgetItem

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


class CompareTableView(Card):
    """A card with the table, either of rows that differ or of all, and under it how much is the same.

    Signals:
        rows_changed: It has more or fewer rows than before.
    """

    rows_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.comparison = Comparison()
        self.view = named(QTableWidget(), "Results and settings of the compared runs")
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
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
        self.all.setToolTip("Also show the settings that are the same")
        self.all.toggled.connect(self._on_all_toggled)
        foot = lay_row(None, self.same, self.all, None, spacing=8, margins=(12, 0, 8, 0))
        lay_column(self, self.view, foot, spacing=4, margins=(1, 4, 1, 6), grow=self.view)

    @property
    def needed_height(self) -> int:
        rows = self.view.rowCount() * self.view.verticalHeader().defaultSectionSize()
        return rows + self.view.horizontalHeader().sizeHint().height() + self.all.sizeHint().height() + 24

    def show_comparison(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.same.setText(comparison.same_text)
        self._fill()

    def copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.comparison.as_tabs(all_rows=self.all.isChecked()))

    def _on_all_toggled(self, on: bool) -> None:
        self.all.setText("Show &differences only" if on else "Show &all")
        self.same.setVisible(not on)
        self._fill()

    def _fill(self) -> None:
        """Fills the table again at the place that is in sight."""
        view, labels, bar = self.view, self.comparison.labels, self.view.verticalScrollBar()
        rows: list[str | Row] = []
        for heading, found in self.comparison.sections(all_rows=self.all.isChecked()):
            rows += [heading, *found]
        is_other, place = len(rows) != view.rowCount(), bar.value()
        view.clearSpans()
        view.clearContents()
        view.setRowCount(len(rows))
        if view.columnCount() != 1 + len(labels):
            view.setColumnCount(1 + len(labels))
            view.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
            view.setColumnWidth(0, LABEL_LETTERS * self.fontMetrics().averageCharWidth())
        for column, label in enumerate(("", *labels)):
            view.setHorizontalHeaderItem(column, self._head(column, label))
        for number, row in enumerate(rows):
            if isinstance(row, str):
                view.setItem(number, 0, _cell(row, is_bold=True))
                view.setSpan(number, 0, 1, 1 + len(labels))
            else:
                self._fill_row(number, row)
        bar.setValue(place)
        if is_other:
            self.rows_changed.emit()

    def _head(self, column: int, label: str) -> QTableWidgetItem:
        item = _cell(label)
        if column:
            swatch = QPixmap(*SWATCH)
            swatch.fill(rank_colour(column - 1, self.palette()))
            item.setData(Qt.ItemDataRole.DecorationRole, swatch)
        return item

    def _fill_row(self, number: int, row: Row) -> None:
        palette = self.palette()
        tint = QBrush(blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), TINT))
        self.view.setItem(number, 0, _cell(row.label))
        for place, text in enumerate(row.texts):
            item = _cell(text, is_bold=place in row.best)
            best = ", best" if place in row.best else ""
            spoken = f"{self.comparison.labels[place]}, {row.label}: {text}{best}"
            item.setData(Qt.ItemDataRole.AccessibleTextRole, spoken)
            if place in row.changed and row not in self.comparison.results:
                item.setBackground(tint)
            self.view.setItem(number, place + 1, item)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "all"):
            self._fill()


def _cell(text: str, *, is_bold: bool = False) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(text)
    if is_bold:
        font = item.font()
        font.setBold(True)
        item.setFont(font)
    return item
