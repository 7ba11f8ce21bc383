"""The left panel: the runs there are, live ones on top, each with its state as sign and word."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QAbstractItemModel,
    QItemSelection,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.models.run_list import ENTRY, is_live, progress, reason
from app.views.style.fonts import tabular
from app.views.style.icons import paint_icon
from app.views.style.palette import state_colour
from app.views.style.tones import muted, rule
from app.views.widgets.build import bold_label, lay_column, named
from app.views.widgets.empty_note import WithNote
from app.views.widgets.notice_bar import NoticeBar
from core.formatting import UNKNOWN, number
from core.run_folder.store import RunEntry

INVITATION: Final = (
    "No runs yet.\n\nPress Start to train a small GPT on Python's standard library. It takes two minutes and "
    "downloads nothing."
)
SIGNS: Final = {
    word: f"state-{word}"
    for word in ("starting", "training", "stopping", "stopped", "finished", "failed", "interrupted", "idle")
}
MARGIN: Final = 8
ICON: Final = 16
REASON_LINES: Final = 2
MIN_WIDTH: Final = 160
Index = QModelIndex | QPersistentModelIndex


class RunDelegate(QStyledItemDelegate):
    """One run: its name; under it state, progress and last loss; for a failed one, why."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Two lines, and up to two more where there is a reason."""
        line = option.fontMetrics.height()
        height = 2 * MARGIN + 2 * line + 4
        if reason(index.data(ENTRY)):
            height += 2 + self._reason_rect(option, index).height()
        return QSize(120, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draws the row over the style's own background (selection, hover, focus)."""
        style = option.widget.style()
        style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, option.widget)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        palette = option.palette
        group = (
            QPalette.ColorGroup.Active if option.state & QStyle.StateFlag.State_Active else QPalette.ColorGroup.Inactive
        )
        text = palette.color(group, QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text)
        lesser = text if selected else muted(palette)
        entry: RunEntry = index.data(ENTRY)
        sign = text if selected else state_colour(entry.word, palette)
        painter.save()
        box = option.rect.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
        line = option.fontMetrics.height()
        left = box.left() + ICON + 8
        paint_icon(
            painter,
            SIGNS.get(entry.word, "state-unreadable"),
            QPoint(box.left(), box.top() + (line - ICON) // 2),
            ICON,
            sign,
        )
        self._text(painter, option.font, text, QRect(left, box.top(), box.right() - left + 1, line), str(index.data()))
        second = QRect(left, box.top() + line + 4, box.right() - left + 1, line)
        self._second_line(painter, option, entry, second, (sign, lesser))
        if why := reason(entry):
            painter.setFont(_smaller(option.font))
            painter.setPen(text if selected else palette.color(QPalette.ColorRole.Text))
            area = self._reason_rect(option, index)
            area.moveTop(second.bottom() + 2)
            flags = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop
            painter.setClipRect(area)
            painter.drawText(area, flags, _cut(why, QFontMetrics(painter.font()), area.width()))
        if option.state & QStyle.StateFlag.State_HasFocus and option.state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setPen(text)
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))
        painter.restore()

    def _second_line(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        entry: RunEntry,
        area: QRect,
        colours: tuple[QColor, QColor],
    ) -> None:
        sign, lesser = colours
        font = tabular(_smaller(option.font))
        metrics = QFontMetrics(font)
        loss, done = entry.state.loss if entry.state else None, progress(entry)
        right = UNKNOWN if done is None else f"{done:.0%}"
        right_width = metrics.horizontalAdvance("100 %")
        room = area.width() - right_width - metrics.horizontalAdvance(entry.word) - 16
        name = "loss " if metrics.horizontalAdvance("loss 0.0000") <= room else ""  # in a narrow list the word matters
        loss_width = metrics.horizontalAdvance(f"{name}0.0000")
        loss_text = f"{name}{number(loss)}" if loss_width <= room else ""
        painter.setFont(font)
        painter.setPen(sign)
        left = QRect(area.left(), area.top(), area.width() - right_width - 8, area.height())
        painter.drawText(left, Qt.AlignmentFlag.AlignVCenter, entry.word)
        painter.setPen(lesser)
        middle = QRect(area.right() - right_width - loss_width - 8, area.top(), loss_width, area.height())
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(middle, align, loss_text)
        painter.drawText(QRect(area.right() - right_width, area.top(), right_width + 1, area.height()), align, right)
        if is_live(entry) and done is not None:
            bar = QRect(area.left(), area.bottom() + 4, area.width(), 2)
            painter.fillRect(bar, rule(option.palette))
            painter.fillRect(QRect(bar.left(), bar.top(), round(bar.width() * done), 2), sign)

    def _text(self, painter: QPainter, font: QFont, colour: QColor, area: QRect, text: str) -> None:
        painter.setFont(font)
        painter.setPen(colour)
        shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, shown)

    def _reason_rect(self, option: QStyleOptionViewItem, index: Index) -> QRect:
        width = max(60, (option.widget.viewport().width() if isinstance(option.widget, QListView) else 220))
        width -= 2 * MARGIN + ICON + 8
        metrics = QFontMetrics(_smaller(option.font))
        text = _cut(reason(index.data(ENTRY)), metrics, width)
        left = option.rect.left() + MARGIN + ICON + 8
        needed = metrics.boundingRect(QRect(0, 0, width, 400), Qt.TextFlag.TextWordWrap, text).height()
        return QRect(left, 0, width, min(needed, REASON_LINES * metrics.height()))


def _cut(text: str, metrics: QFontMetrics, width: int) -> str:
    return metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(width * REASON_LINES * 0.92))


def _smaller(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.92)
    return small


class RunsPanel(QWidget):
    """The list of runs, or an invitation while there is none.

    Signals:
        run_chosen: A run's folder.
        menu_requested: Where on the screen the menu of the run that is shown should open.
    """

    run_chosen = Signal(object)
    menu_requested = Signal(QPoint)

    def __init__(self, model: QAbstractItemModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.notice = NoticeBar()
        self.view = named(QListView(), "Runs")
        title = bold_label("Ru&ns", self.view)
        title.setContentsMargins(12, 8, 12, 4)
        self.view.setModel(model)
        self.view.setItemDelegate(RunDelegate(self.view))
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setResizeMode(QListView.ResizeMode.Adjust)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setMouseTracking(True)
        self.view.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._on_menu_requested)
        self.page = WithNote(self.view, INVITATION)
        self.page.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.page.note.setContentsMargins(12, 8, 12, 12)
        lay_column(self, title, self.notice, self.page, grow=self.page)
        self.setMinimumWidth(MIN_WIDTH)
        for changed in (model.rowsInserted, model.rowsRemoved, model.modelReset):
            changed.connect(self._on_rows_changed)
        self._on_rows_changed()

    def show_current(self, path: Path | None) -> None:
        """Marks the run that is shown, without choosing it again."""
        with QSignalBlocker(self.view.selectionModel()):
            if path is None:
                self.view.clearSelection()
            for row in range(self._model.rowCount()):
                index = self._model.index(row, 0)
                if index.data(ENTRY).path == path:
                    self.view.setCurrentIndex(index)
                    break
        self.view.viewport().update()

    def _on_rows_changed(self, *_: object) -> None:
        self.page.set_empty(not self._model.rowCount())

    def _on_selection_changed(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        for index in selected.indexes():
            self.run_chosen.emit(index.data(ENTRY).path)
            return

    def _on_menu_requested(self, place: QPoint) -> None:
        index = self.view.indexAt(place)
        if not index.isValid():
            return
        self.view.setCurrentIndex(index)  # which shows the run, if it is not the one shown
        self.menu_requested.emit(self.view.viewport().mapToGlobal(place))
