"""A splitter whose handle is a thin rule with a wider place to grab it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle

from app.style.tones import rule

GRAB_PX: Final = 5


class RuledHandle(QSplitterHandle):
    """A handle with a rule of one pixel in its middle."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colour = QPainter(self), rule(self.palette())
        if self.orientation() == Qt.Orientation.Horizontal:
            painter.fillRect(self.width() // 2, 0, 1, self.height(), colour)
        else:
            painter.fillRect(0, self.height() // 2, self.width(), 1, colour)


class BareHandle(QSplitterHandle):
    """A handle without a rule, between cards that end at it."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        pass


class RuledSplitter(QSplitter):
    """`QSplitter` with `RuledHandle`s, or with `BareHandle`s where it is not `ruled`.

    A handle must not ask for its `splitter()`: PySide then takes the splitter for a child of its handle, and Python's
    garbage collection deletes both, with all that they hold.
    """

    def __init__(self, orientation: Qt.Orientation, *, ruled: bool = True) -> None:
        super().__init__(orientation)
        self._handle = RuledHandle if ruled else BareHandle
        self.setHandleWidth(GRAB_PX)

    def createHandle(self) -> QSplitterHandle:
        return self._handle(self.orientation(), self)
