"""A splitter whose handle is a thin rule with a wider place to grab it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle

from app.views.style.tones import rule

GRAB_PX: Final = 5


class RuledHandle(QSplitterHandle):
    """One pixel of rule in the middle of what can be grabbed."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        splitter = self.splitter()
        if isinstance(splitter, RuledSplitter) and not splitter.is_ruled:
            return
        painter, colour = QPainter(self), rule(self.palette())
        if self.orientation() == Qt.Orientation.Horizontal:
            painter.fillRect(self.width() // 2, 0, 1, self.height(), colour)
        else:
            painter.fillRect(0, self.height() // 2, self.width(), 1, colour)


class RuledSplitter(QSplitter):
    """`QSplitter` with `RuledHandle`s.

    Args:
        orientation: Of the splitter.
        ruled: Draws the rule; cards that end at the handle need none.
    """

    def __init__(self, orientation: Qt.Orientation, *, ruled: bool = True) -> None:
        super().__init__(orientation)
        self.is_ruled = ruled
        self.setHandleWidth(GRAB_PX)

    def createHandle(self) -> QSplitterHandle:
        return RuledHandle(self.orientation(), self)
