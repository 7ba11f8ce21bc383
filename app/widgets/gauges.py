"""Meter: a thin bar that shows how full something is."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.tones import rule, tone


class Meter(QWidget):
    """A bar that is filled to a share between 0 and 1; empty when the share is not known."""

    def __init__(self) -> None:
        super().__init__()
        self._share: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(80, 4)

    def set_share(self, share: float | None) -> None:
        if share != self._share:
            self._share = share
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the trough, and the filled part in the accent colour, or that of a warning above 95 %."""
        painter, share = QPainter(self), min(1.0, max(0.0, self._share or 0.0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(rule(self.palette()))
        painter.drawRoundedRect(QRectF(self.rect()), 2, 2)
        if share:
            painter.setBrush(tone(self.palette(), "warning" if share > 0.95 else "accent"))
            painter.drawRoundedRect(QRectF(0, 0, self.width() * share, self.height()), 2, 2)
