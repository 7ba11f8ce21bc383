"""Cells of the alerts: a bold title with cause and next step below it, all cells of a row on one first line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QIcon, QPainter
from PySide6.QtWidgets import QApplication, QStyle, QStyledItemDelegate, QStyleOptionViewItem

PADDING: Final = 6
LINE_GAP: Final = 2
ICON: Final = 16
_WRAPPED: Final = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_TALL: Final = 1 << 16
Index = QModelIndex | QPersistentModelIndex


class AlertDelegate(QStyledItemDelegate):
    """Each line of a cell's text is a paragraph; where there are several, the first is the title."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        text, sign, area = _text(index), QIcon(cell.icon), _inner(cell)
        cell.text = ""
        cell.features &= ~QStyleOptionViewItem.ViewItemFeature.HasDecoration
        style = QApplication.style() if cell.widget is None else cell.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, cell, painter, cell.widget)
        painter.save()
        painter.setPen(cell.palette.text().color())
        if not sign.isNull():
            line = cell.fontMetrics.height()
            sign.paint(painter, QRect(area.left(), area.top() + (line - ICON) // 2, ICON, ICON))
            area.setLeft(area.left() + ICON + PADDING)
        for paragraph, font, height in _paragraphs(text, cell.font, area.width()):
            painter.setFont(font)
            painter.drawText(QRect(area.left(), area.top(), area.width(), height), _WRAPPED, paragraph)
            area.setTop(area.top() + height + LINE_GAP)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        text = _text(index)
        needed = cell.fontMetrics.horizontalAdvance(text) + (0 if cell.icon.isNull() else ICON + PADDING)
        heights = [height for _, _, height in _paragraphs(text, cell.font, max(1, _inner(cell).width()))]
        return QSize(needed + 2 * PADDING + 2, sum(heights) + (len(heights) - 1) * LINE_GAP + 2 * PADDING)


def _text(index: Index) -> str:
    return str(index.data(Qt.ItemDataRole.DisplayRole) or "")


def _inner(cell: QStyleOptionViewItem) -> QRect:
    area: QRect = cell.rect
    return area.adjusted(PADDING, PADDING, -PADDING, -PADDING)


def _paragraphs(text: str, font: QFont, width: int) -> Iterator[tuple[str, QFont, int]]:
    """Each paragraph with its font and its height."""
    paragraphs = text.split("\n")
    for number, paragraph in enumerate(paragraphs):
        own = QFont(font)
        own.setBold(number == 0 and len(paragraphs) > 1)
        box = QFontMetrics(own).boundingRect(QRect(0, 0, width, _TALL), _WRAPPED, paragraph)
        yield paragraph, own, box.height()
