"""Segment: a radio button drawn as a part of one bar, with a radio button's keys and its role for screen readers."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from app.style.tones import blend, muted, rule, tone

_CORNER: Final = 4.0
_SIDE: Final = 10
_HEIGHT: Final = 32
_TURNED: Final[dict[int, Qt.Key]] = {
    Qt.Key.Key_Up.value: Qt.Key.Key_Left,
    Qt.Key.Key_Down.value: Qt.Key.Key_Right,
}


class Segment(QRadioButton):
    """One choice of a `SegmentBar`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.is_first = self.is_last = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        text = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text())
        return QSize(text.width() + 2 * _SIDE, max(_HEIGHT, text.height() + 12))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width() - _SIDE, self.sizeHint().height())

    def hitButton(self, position: QPoint) -> bool:
        # All of it can be pressed, not only a circle and its text.
        return self.rect().contains(position)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # All four arrows choose a neighbour, as in any group of radio buttons; Qt takes two of them.
        turned = _TURNED.get(event.key())
        super().keyPressEvent(event if turned is None else QKeyEvent(event.type(), turned, event.modifiers()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        active = palette.ColorGroup.Active
        base, text = palette.color(active, palette.ColorRole.Base), palette.color(active, palette.ColorRole.ButtonText)
        accent, is_on = tone(palette, "accent"), self.isChecked()
        ground = base
        if is_on:
            ground = blend(accent if self.isEnabled() else muted(palette), base, 0.18)
        elif self.isEnabled() and self.underMouse():
            ground = blend(text, base, 0.06)
        shape = self._shape()
        painter.setPen(QPen(rule(palette), 1))
        painter.setBrush(ground)
        painter.drawPath(shape)
        if is_on and self.isEnabled():
            painter.setPen(QPen(accent, 2))
            bottom = self.height() - 2.0
            painter.drawLine(QPointF(_SIDE, bottom), QPointF(self.width() - _SIDE, bottom))
        if self.hasFocus():
            painter.setPen(QPen(accent, 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(3, 3, -3, -3), 2, 2)
        font = self.font()
        font.setBold(is_on)
        painter.setFont(font)
        painter.setPen(text if self.isEnabled() else blend(text, base, 0.45))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextShowMnemonic, self.text())

    def _shape(self) -> QPainterPath:
        """Return the outline: round at the two ends of the bar, straight between two segments."""
        left = 0.5 if self.is_first else -0.5
        box = QRectF(left, 0.5, self.width() - left - 0.5, self.height() - 1.0)
        path = QPainterPath()
        path.setFillRule(Qt.FillRule.WindingFill)
        path.addRoundedRect(box, _CORNER, _CORNER)
        if not self.is_first:
            path.addRect(box.adjusted(0, 0, -_CORNER, 0))
        if not self.is_last:
            path.addRect(box.adjusted(_CORNER, 0, 0, 0))
        return path.simplified()


class SegmentBar(QWidget):
    """Row of segments."""

    def __init__(self, segments: list[Segment]) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for segment in segments:
            segment.is_first, segment.is_last = segment is segments[0], segment is segments[-1]
            row.addWidget(segment, 1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
