"""View of the comparison's table: the rows that differ, and how many are the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPalette,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.compare.compare_table import CompareTable, Index
from app.style.fonts import tabular
from app.style.palette import plot_colours, rank_colour
from app.style.tones import blend, tone
from app.widgets.build import lay_column, lay_row, muted_label, named
from app.widgets.card import Card
from core.compare.comparison import Comparison

_WORD_END: Final = re.compile(r"[\s\-_/.,:=·×]")


def distinct_parts(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each name as what all begin with, what tells it apart, and what all end with; whole words only.

    A name that is its own beginning, and a single one, is not divided: ``("", name, "")``.
    """
    begin = _common_start(names)
    rests = [name.removeprefix(begin) for name in names]
    end = _common_start([rest[::-1] for rest in rests])[::-1]
    middles = [rest.removesuffix(end) for rest in rests]
    if len(set(names)) < 2 or not all(middles):
        return [("", name, "") for name in names]
    return [(begin, middle, end) for middle in middles]


def _common_start(texts: Sequence[str]) -> str:
    """What all texts begin with, up to the end of a word: the least and the greatest share it with all between."""
    pairs = zip(min(texts, default=""), max(texts, default=""), strict=False)
    common = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ends = [found.end() for found in _WORD_END.finditer(common)]
    return common[: ends[-1]] if ends else ""


SWATCH: Final = (12, 3)
MARGIN: Final = 10
CHOSEN: Final = 0.25
LABEL_LETTERS: Final = 36
RUN_LETTERS: Final = 28
ROW_GAP: Final = 12
TINT: Final = 0.12


class CompareTableView(Card):
    """A card with the table, and under it what is the same."""

    def __init__(self) -> None:
        super().__init__()
        self.model = CompareTable(self)
        self.model.modelReset.connect(self._span_headings)
        self.view = _Table(self)
        self.view.setModel(self.model)
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
        """Shows a comparison's rows; what is chosen and where it is scrolled to stay."""
        chosen = [(index.row(), index.column()) for index in self.view.selectedIndexes()]
        place = self.view.verticalScrollBar().value()
        self.model.show_comparison(comparison)
        self.same.setText(comparison.same_text)
        self._dress()
        for row, column in chosen:
            self.view.selectionModel().select(
                self.model.index(row, column), self.view.selectionModel().SelectionFlag.Select
            )
        self.view.verticalScrollBar().setValue(place)

    def copy_text(self) -> None:
        """Copies the table as it is shown, cells parted by tabs."""
        QGuiApplication.clipboard().setText(self.model.comparison.as_tabs(all_rows=self.all.isChecked()))

    def copy_csv(self) -> None:
        QGuiApplication.clipboard().setText(self.csv())

    def csv(self) -> str:
        return self.model.comparison.as_csv(all_rows=self.all.isChecked())

    def copy_chosen(self) -> None:
        """Copies the chosen cells; without any, the table."""
        chosen = sorted((index.row(), index.column()) for index in self.view.selectedIndexes())
        if not chosen:
            self.copy_text()
            return
        columns = sorted({column for _, column in chosen})
        cells = {place: str(self.model.index(*place).data() or "") for place in chosen}
        lines = ["\t".join(cells.get((row, c), "") for c in columns) for row in sorted({row for row, _ in chosen})]
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _on_all_toggled(self, on: bool) -> None:
        self.model.show_all(on)
        self.all.setText("Show &differences only" if on else "Show &all")
        self.same.setVisible(not on)

    def _span_headings(self) -> None:
        self.view.clearSpans()
        for row in self.model.headings():
            self.view.setSpan(row, 0, 1, self.model.columnCount())

    def _dress(self) -> None:
        palette = self.palette()
        self.model.tint = QBrush(blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), TINT))
        self.model.swatches = [rank_colour(n, palette) for n in range(self.model.columnCount() - 1)]
        self.view.viewport().update()
        self.view.horizontalHeader().viewport().update()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "all"):
            self._dress()


class _Table(QTableView):
    """Rows with a hairline under each, columns of one width."""

    def __init__(self, owner: CompareTableView) -> None:
        super().__init__(owner)
        self._owner = owner
        named(self, "Results, settings and environment of the compared runs")
        self.setFont(tabular(self.font()))
        self.setItemDelegate(_Cells(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + ROW_GAP)
        header = CompareHead(self)
        self.setHorizontalHeader(header)
        header.setFixedHeight(self.verticalHeader().defaultSectionSize())
        header.setMinimumSectionSize(RUN_LETTERS * self.fontMetrics().averageCharWidth())
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self._label_width = LABEL_LETTERS * self.fontMetrics().averageCharWidth()

    def setModel(self, model: CompareTable | None) -> None:  # type: ignore[override]
        super().setModel(model)
        if model is not None:
            model.modelReset.connect(self._fit_labels)

    def _fit_labels(self) -> None:
        if self.model().columnCount():
            self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
            self.setColumnWidth(0, self._label_width)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self._owner.copy_chosen()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()
        else:
            super().keyPressEvent(event)


class _Cells(QStyledItemDelegate):
    """Cells over a hairline, with the page's margins. Chosen ones are tinted more, whatever the style does."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        state: QStyle.StateFlag = option.state
        box: QRect = option.rect
        palette: QPalette = option.palette
        ground = index.data(Qt.ItemDataRole.BackgroundRole)
        if isinstance(ground, QBrush):
            painter.fillRect(box, ground)
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), CHOSEN))
        _draw_text(painter, box, option.text, option.font, palette.color(QPalette.ColorRole.Text))
        painter.setPen(plot_colours(palette).grid)
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(tone(palette, "accent"))
            painter.drawRect(box.adjusted(0, 0, -1, -1))


class CompareHead(QHeaderView):
    """The runs' names with their colours, on the card's own ground."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setSectionsClickable(False)
        self.setAccessibleName("Compared runs")

    def paintSection(self, painter: QPainter, rect: QRect, logical_index: int) -> None:
        model, palette = self.model(), self.palette()
        painter.fillRect(rect, palette.color(QPalette.ColorRole.Base))
        painter.setPen(plot_colours(palette).grid)
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        sign = model.headerData(logical_index, Qt.Orientation.Horizontal, Qt.ItemDataRole.DecorationRole)
        name = model.headerData(logical_index, Qt.Orientation.Horizontal)
        if isinstance(sign, QColor) and name:
            painter.fillRect(rect.left() + MARGIN, rect.center().y() - 1, *SWATCH, sign)
            box = rect.adjusted(SWATCH[0] + 6, 0, 0, 0)
            shown = self.shown_name(logical_index, box.width() - 2 * MARGIN)
            _draw_text(painter, box, shown, self.font(), palette.color(QPalette.ColorRole.Text))

    def shown_name(self, section: int, width: int) -> str:
        """A run's name; where it is too long, what tells it from the others stays and what all share gives way."""
        model, metrics = self.model(), self.fontMetrics()
        names = [str(model.headerData(n, Qt.Orientation.Horizontal)) for n in range(1, model.columnCount())]
        name = names[section - 1]
        if metrics.horizontalAdvance(name) <= width:
            return name
        begin, middle, end = distinct_parts(names)[section - 1]
        kept = middle + ("…" if end else "")
        room = width - metrics.horizontalAdvance(kept)
        return metrics.elidedText(begin, Qt.TextElideMode.ElideRight, room) + kept if room > 0 else kept


def _draw_text(painter: QPainter, box: QRect, text: str, font: QFont, colour: QColor) -> None:
    inner = box.adjusted(MARGIN, 0, -MARGIN, 0)
    painter.setFont(font)
    painter.setPen(colour)
    shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideMiddle, inner.width())
    painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
