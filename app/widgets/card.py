"""Cards and badges: the grounds on which the window's parts stand."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from app.style.palette import plot_colours
from app.style.tones import tint, tone

CORNER: Final = 6
BAR: Final = 3
BADGE_MARGIN: Final = 8


def draw_card(widget: QWidget, edge: str = "") -> None:
    """Draw a ground with round corners and a hairline in a paint event; `edge`: a tone for a bar at the left."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colours = plot_colours(widget.palette())
    box = QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setPen(colours.grid)
    painter.setBrush(colours.ground)
    painter.drawRoundedRect(box, CORNER, CORNER)
    if edge:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tone(widget.palette(), edge))
        painter.setClipRect(QRectF(0, 0, BAR, widget.height()))
        painter.drawRoundedRect(box, CORNER, CORNER)


class Card(QFrame):
    """A part of the window on a ground of its own, with an `edge` as in `draw_card`."""

    def __init__(self, parent: QWidget | None = None, *, edge: str = "") -> None:
        super().__init__(parent)
        self._edge = edge

    def set_edge(self, edge: str) -> None:
        if edge != self._edge:
            self._edge = edge
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_card(self, self._edge)


class Badge(QLabel):
    """A word on a pill of its tone, such as the state of a run."""

    def __init__(self, text: str = "", tone_name: str = "info") -> None:
        super().__init__(text)
        self._tone = tone_name
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        font = self.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * 0.92)
        self.setFont(font)

    def say(self, text: str, tone_name: str) -> None:
        self._tone = tone_name
        self.setText(text)
        self.update()

    def sizeHint(self) -> QSize:
        return super().sizeHint() + QSize(2 * BADGE_MARGIN, 4)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = self.palette()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tint(ground, "info" if self._tone == "muted" else self._tone))
        box = QRectF(self.rect())
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(tone(ground, self._tone))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())
