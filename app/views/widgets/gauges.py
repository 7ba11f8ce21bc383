"""Small pictures of a figure: a meter (how full) and a sparkline (how it went)."""

from __future__ import annotations

from collections import deque
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.views.style.tones import blend, rule, tone

SPARK_POINTS: Final = 60


class Meter(QWidget):
    """A bar that is filled to a share between 0 and 1; empty when the share is not known.

    Args:
        parent: Qt owner.
        warns: It turns to the tone of a warning when it is nearly full.
    """

    def __init__(self, parent: QWidget | None = None, *, warns: bool = True) -> None:
        super().__init__(parent)
        self._warns = warns
        self._share: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(80, 4)

    def set_share(self, share: float | None) -> None:
        """Sets how full it is; repaints only when that changed."""
        if share != self._share:
            self._share = share
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The trough, and the filled part in the accent colour (that of a warning above 95 %)."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(rule(self.palette()))
        painter.drawRoundedRect(QRectF(self.rect()), 2, 2)
        if self._share is None:
            return
        share = min(1.0, max(0.0, self._share))
        painter.setBrush(tone(self.palette(), "warning" if self._warns and share > 0.95 else "accent"))
        painter.drawRoundedRect(QRectF(0, 0, self.width() * share, self.height()), 2, 2)


class Sparkline(QWidget):
    """The last minute of a percentage, oldest left; missing values leave a gap."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: deque[float | None] = deque(maxlen=SPARK_POINTS)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(64, 16)

    def append(self, percent: float | None) -> None:
        """Adds the newest value."""
        self._values.append(percent)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        ground = self.palette().color(QPalette.ColorRole.Window)
        painter.fillRect(self.rect(), blend(self.palette().color(QPalette.ColorRole.WindowText), ground, 0.06))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(tone(self.palette(), "accent"), 1.0)
        pen.setCosmetic(True)
        painter.setPen(pen)
        step = self.width() / (SPARK_POINTS - 1)
        left = self.width() - step * (len(self._values) - 1)
        line: list[QPointF] = []
        for i, value in enumerate([*self._values, None]):
            if value is None:
                painter.drawPolyline(QPolygonF(line))
                line = []
                continue
            line.append(QPointF(left + i * step, (self.height() - 2) * (1.0 - min(100.0, value) / 100.0) + 1.0))
