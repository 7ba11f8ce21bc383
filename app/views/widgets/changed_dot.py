"""Dot beside a field whose value differs from its default; a click puts the default back."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.views.style.tones import tone

WIDTH: Final = 12
_RADIUS: Final = 3.0


class ChangedDot(QAbstractButton):
    """A dot on the accent, reached by Tab as any button. Its place keeps its width while it is hidden."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = label
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedWidth(WIDTH)
        self.setAccessibleName(f"Reset {label}")
        self.hide()

    def show_default(self, text: str) -> None:
        self.setToolTip(f"Changed. Click to reset to the default: {text or 'none'}")

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, 24)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        accent, centre = tone(self.palette(), "accent"), QPointF(WIDTH / 2, self.height() / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(accent)
        painter.drawEllipse(centre, _RADIUS, _RADIUS)
        if self.hasFocus() or self.underMouse():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(accent, 1))
            painter.drawEllipse(centre, _RADIUS + 2, _RADIUS + 2)
