"""Painter of a run's row: name and last loss; under them how far it is or why it failed, and its curve."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.models.run_list import ROW
from app.models.run_row import RunRow, detail_text, is_live, progress, value_text
from app.views.style.fonts import tabular
from app.views.style.icons import paint_icon
from app.views.style.palette import state_colour
from app.views.style.tones import chosen_ground, hover_ground, muted, rule, tone

SIGNS: Final = {
    word: f"state-{word}"
    for word in ("starting", "training", "stopping", "stopped", "finished", "failed", "interrupted", "idle")
}
MARGIN: Final = 8
INSET: Final = 4
"""From the list's edge to the ground of a chosen row."""
ICON: Final = 16
BAR: Final = 3
RADIUS: Final = 6
LINE_GAP: Final = 4
Index = QModelIndex | QPersistentModelIndex


class RunDelegate(QStyledItemDelegate):
    """Paints one run in two lines."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        """The same for all rows, so that a thousand of them are laid out at once."""
        second = QFontMetrics(_smaller(option.font)).height()
        return QSize(120, 2 * (MARGIN + INSET // 2) + option.fontMetrics.height() + LINE_GAP + second)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draws ground, sign and both lines."""
        row: RunRow = index.data(ROW)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _paint_ground(painter, option)
        box = option.rect.adjusted(INSET + MARGIN, INSET // 2 + MARGIN, -INSET - MARGIN, -INSET // 2 - MARGIN)
        line = option.fontMetrics.height()
        sign = QPoint(box.left(), box.top() + (line - ICON) // 2)
        colour = state_colour(row.entry.word, option.palette)
        paint_icon(painter, SIGNS.get(row.entry.word, "state-unreadable"), sign, ICON, colour)
        text = box.adjusted(ICON + MARGIN, 0, 0, 0)
        _paint_first_line(painter, option, row, QRect(text.left(), text.top(), text.width(), line))
        top = text.top() + line + LINE_GAP
        second = QRect(text.left(), top, text.width(), box.bottom() - top + 1)
        _paint_second_line(painter, option, row, second)
        if is_live(row.entry):
            _paint_progress(painter, option.palette, row, QRect(text.left(), box.bottom() + 3, text.width(), 2))
        painter.restore()


def _paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """A quiet ground under the chosen row, with a bar at its left; a frame where the keyboard is."""
    palette = option.palette
    card = QRectF(option.rect.adjusted(INSET, INSET // 2, -INSET, -INSET // 2)).adjusted(0.5, 0.5, -0.5, -0.5)
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    painter.setPen(Qt.PenStyle.NoPen)
    if is_chosen:
        painter.setPen(rule(palette))
        painter.setBrush(chosen_ground(palette))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
        height = round(card.height() * 0.5)
        bar = QRectF(option.rect.left() + INSET, card.center().y() - height / 2, BAR, height)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tone(palette, "accent"))
        painter.drawRoundedRect(bar, BAR / 2, BAR / 2)
    elif option.state & QStyle.StateFlag.State_MouseOver:
        painter.setBrush(hover_ground(palette))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if option.state & QStyle.StateFlag.State_HasFocus and option.state & QStyle.StateFlag.State_KeyboardFocusChange:
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        painter.drawRoundedRect(card.adjusted(1, 1, -1, -1), RADIUS, RADIUS)


def _paint_first_line(painter: QPainter, option: QStyleOptionViewItem, row: RunRow, area: QRect) -> None:
    font = tabular(option.font)
    font.setWeight(QFont.Weight.DemiBold)
    metrics = QFontMetrics(font)
    value = value_text(row.entry)
    room = area.adjusted(0, 0, -metrics.horizontalAdvance(value) - MARGIN, 0)
    painter.setFont(font)
    painter.setPen(option.palette.color(QPalette.ColorRole.WindowText))
    painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, value)
    name = metrics.elidedText(row.record.label, Qt.TextElideMode.ElideMiddle, room.width())
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, name)


def _paint_second_line(painter: QPainter, option: QStyleOptionViewItem, row: RunRow, area: QRect) -> None:
    font = tabular(_smaller(option.font))
    painter.setFont(font)
    painter.setPen(muted(option.palette))
    text = QFontMetrics(font).elidedText(detail_text(row.record), Qt.TextElideMode.ElideRight, area.width())
    painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)


def _paint_progress(painter: QPainter, palette: QPalette, row: RunRow, area: QRect) -> None:
    done = progress(row.entry)
    if done is not None:
        colour = state_colour(row.entry.word, palette)
        painter.fillRect(area, rule(palette))
        painter.fillRect(QRect(area.left(), area.top(), round(area.width() * done), area.height()), colour)


def _smaller(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.92)
    return small
