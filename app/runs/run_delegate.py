"""Painter of a run's row: name and last value; under them devices and times or why it failed, and its curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import QApplication, QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.runs.run_list import CURVE, ROW
from app.runs.run_row import RunRow, detail_text, is_live, progress, reason, title_text, value_text
from app.style.fonts import tabular
from app.style.icons import paint_icon
from app.style.palette import state_colour
from app.style.tones import chosen_ground, hover_ground, muted, rule, tone
from core.metrics.curve import MetricCurve
from core.run_folder.naming import SEPARATOR

SIGNS: Final = {
    word: f"state-{word}"
    for word in ("starting", "training", "stopping", "stopped", "finished", "failed", "interrupted", "idle")
}
MARGIN: Final = 8
# From the list's edge to the ground of a chosen row.
INSET: Final = 4
ICON: Final = 16
BAR: Final = 3
RADIUS: Final = 6
LINE_GAP: Final = 4
SPARK_WIDTH: Final = 56
SPARK_LINE: Final = 1.3
LEAST_WIDTH_WITH_SPARK: Final = 200
PIN: Final = 12
EDITOR_EDGE: Final = 4
Index = QModelIndex | QPersistentModelIndex


class RunDelegate(QStyledItemDelegate):
    """Paints one run in two lines.

    Attributes:
        shown: The run that the window shows: a bar marks it, also among several chosen rows.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shown: Path | None = None

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        """The same for all rows, so that a thousand of them are laid out at once."""
        second = QFontMetrics(_smaller(option.font)).height()
        return QSize(120, 2 * (MARGIN + INSET // 2) + option.fontMetrics.height() + LINE_GAP + second)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: RunRow = index.data(ROW)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option, row.path == self.shown)
        box = _box(option.rect)
        line = option.fontMetrics.height()
        place, sign = QPoint(box.left(), box.top() + (line - ICON) // 2), SIGNS.get(row.entry.word, "state-unreadable")
        paint_icon(painter, sign, place, ICON, state_colour(row.entry.word, option.palette))
        curve: MetricCurve = index.data(CURVE)
        text = box.adjusted(ICON + MARGIN, 0, 0, 0)
        _paint_first_line(painter, option, row, curve, QRect(text.left(), text.top(), text.width(), line))
        top = text.top() + line + LINE_GAP
        second = QRect(text.left(), top, text.width(), box.bottom() - top + 1)
        if len(curve.points) > 1 and option.rect.width() >= LEAST_WIDTH_WITH_SPARK:
            spark = QRect(second.right() - SPARK_WIDTH + 1, second.top() + 1, SPARK_WIDTH, second.height() - 2)
            _paint_sparkline(painter, spark, curve.points, _curve_colour(row, option.palette))
            second.setRight(spark.left() - MARGIN)
        _paint_second_line(painter, option, row, second)
        if is_live(row.entry):
            _paint_progress(painter, option.palette, row, QRect(text.left(), box.bottom() + 3, text.width(), 2))
        painter.restore()

    def createEditor(self, parent: QWidget, _option: QStyleOptionViewItem, _index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setPalette(QApplication.palette())  # a list's selection is too quiet for a text
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, _index: Index) -> None:
        box = _box(option.rect).adjusted(ICON + LINE_GAP, -EDITOR_EDGE, 0, 0)
        box.setHeight(option.fontMetrics.height() + 2 * EDITOR_EDGE)
        editor.setGeometry(box)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        # A live run's row changes every second: what is typed stays.
        if not (isinstance(editor, QLineEdit) and editor.isModified()):
            super().setEditorData(editor, index)


def _box(row: QRect) -> QRect:
    return row.adjusted(INSET + MARGIN, INSET // 2 + MARGIN, -INSET - MARGIN, -INSET // 2 - MARGIN)


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem, is_shown: bool) -> None:
    """Draw a quiet ground under chosen rows, a bar at the left of the shown one, a frame around the focus."""
    palette = option.palette
    card = QRectF(option.rect.adjusted(INSET, INSET // 2, -INSET, -INSET // 2)).adjusted(0.5, 0.5, -0.5, -0.5)
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    painter.setPen(Qt.PenStyle.NoPen)
    if is_chosen:
        painter.setPen(rule(palette))
        painter.setBrush(chosen_ground(palette))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
    elif option.state & QStyle.StateFlag.State_MouseOver:
        painter.setBrush(hover_ground(palette))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
    if is_shown:
        height = round(card.height() * 0.5)
        bar = QRectF(option.rect.left() + INSET, card.center().y() - height / 2, BAR, height)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tone(palette, "accent"))
        painter.drawRoundedRect(bar, BAR / 2, BAR / 2)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if option.state & QStyle.StateFlag.State_HasFocus and option.state & QStyle.StateFlag.State_KeyboardFocusChange:
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        painter.drawRoundedRect(card.adjusted(1, 1, -1, -1), RADIUS, RADIUS)


def _paint_first_line(
    painter: QPainter, option: QStyleOptionViewItem, row: RunRow, curve: MetricCurve, area: QRect
) -> None:
    font = tabular(option.font)
    font.setWeight(QFont.Weight.DemiBold)
    metrics = QFontMetrics(font)
    value = value_text(row, curve)
    room = area.adjusted(0, 0, -metrics.horizontalAdvance(value) - MARGIN, 0)
    painter.setFont(font)
    painter.setPen(option.palette.color(QPalette.ColorRole.WindowText))
    painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, value)
    if row.record.notes.pinned:
        room.setRight(room.right() - PIN - 4)
    name = metrics.elidedText(title_text(row.record), Qt.TextElideMode.ElideMiddle, room.width())
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, name)
    if row.record.notes.pinned:
        place = QPoint(room.left() + metrics.horizontalAdvance(name) + 4, room.top() + (room.height() - PIN) // 2)
        paint_icon(painter, "pin", place, PIN, muted(option.palette))


def _paint_second_line(painter: QPainter, option: QStyleOptionViewItem, row: RunRow, area: QRect) -> None:
    font = tabular(_smaller(option.font))
    painter.setFont(font)
    painter.setPen(muted(option.palette))
    painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, elided_detail(row, QFontMetrics(font), area.width()))


def elided_detail(row: RunRow, metrics: QFontMetrics, width: int) -> str:
    """Return the second line without parts that do not fit: the duration, then the stage, which the icon shows.

    Devices and date tell runs of one recipe apart; of a reason for failure only the end is cut.
    """
    text = detail_text(row.record)
    if metrics.horizontalAdvance(text) < width or reason(row.entry):  # which is rounded
        return metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
    first, *between, last = text.split(SEPARATOR)
    while between and metrics.horizontalAdvance(SEPARATOR.join((first, *between, last))) >= width:
        between.pop()
    head = SEPARATOR.join((first, *between))
    room = width - metrics.horizontalAdvance(SEPARATOR + last)
    return metrics.elidedText(head, Qt.TextElideMode.ElideRight, room) + SEPARATOR + last


def _paint_progress(painter: QPainter, palette: QPalette, row: RunRow, area: QRect) -> None:
    done = progress(row.entry)
    if done is not None:
        colour = state_colour(row.entry.word, palette)
        painter.fillRect(area, rule(palette))
        painter.fillRect(QRect(area.left(), area.top(), round(area.width() * done), area.height()), colour)


def _paint_sparkline(painter: QPainter, area: QRect, values: Sequence[float], colour: QColor) -> None:
    """Draws at least two finite values from the left to the right edge, the lowest at the bottom."""
    low, high = min(values), max(values)
    # Halves, because the difference of two large finite numbers may not be one.
    span = high / 2 - low / 2
    line = QPolygonF()
    for number, value in enumerate(values):
        share = (value / 2 - low / 2) / span if span > 0 else 0.5
        x = area.left() + (area.width() - 1) * number / (len(values) - 1)
        line.append(QPointF(x, area.bottom() - (area.height() - 1) * share))
    painter.setPen(QPen(colour, SPARK_LINE, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(line)


def _curve_colour(row: RunRow, palette: QPalette) -> QColor:
    return tone(palette, "error") if row.entry.word in ("failed", "damaged") else tone(palette, "accent")


def _smaller(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.92)
    return small
