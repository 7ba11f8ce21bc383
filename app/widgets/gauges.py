"""Small pictures of a figure: how full something is, how far it is."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QWidget

from app.style.tones import rule, tone

# As often as live figures are drawn.
MOVE_EVERY_MS: Final = 50
_ACROSS_MS: Final = 2000.0
_PIECE: Final = 0.2


class Meter(QWidget):
    """A bar that is filled to a share between 0 and 1; empty when the share is not known.

    Args:
        warns: It turns to the tone of a warning when it is nearly full.
    """

    def __init__(self, *, warns: bool = True) -> None:
        super().__init__()
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
        first, last = self._filled()
        if last > first:
            painter.setBrush(tone(self.palette(), "warning" if self._warns and last > 0.95 else "accent"))
            painter.drawRoundedRect(QRectF(self.width() * first, 0, self.width() * (last - first), self.height()), 2, 2)

    def _filled(self) -> tuple[float, float]:
        return 0.0, min(1.0, max(0.0, self._share or 0.0))


class ProgressMeter(Meter):
    """How far something is; where it cannot say that and is at work, a short piece moves along the bar."""

    def __init__(self) -> None:
        super().__init__(warns=False)
        self._moves = QTimer(self, interval=MOVE_EVERY_MS)
        self._moves.timeout.connect(self._move)
        self._place = 0.0
        self.is_busy = False

    def set_busy(self, busy: bool) -> None:
        """Whether it is at work without a share to show."""
        if busy != self.is_busy:
            self.is_busy, self._place = busy, 0.0
            self._start_or_stop()
            self.update()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._start_or_stop()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._moves.stop()

    def _start_or_stop(self) -> None:
        if self.is_busy and self.isVisible() and self.style().styleHint(QStyle.StyleHint.SH_Widget_Animate):
            self._moves.start()
        else:
            self._moves.stop()

    def _move(self) -> None:
        self._place = (self._place + MOVE_EVERY_MS / _ACROSS_MS) % 1.0
        self.update()

    def _filled(self) -> tuple[float, float]:
        if not self.is_busy:
            return super()._filled()
        begin = (1.0 + _PIECE) * self._place - _PIECE if self._moves.isActive() else 0.5 - _PIECE / 2
        return max(0.0, begin), min(1.0, begin + _PIECE)
