"""A label that is elided where there is little room, and empty where there is none."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

LEAST_LETTERS: Final = 5


class ElidedLabel(QLabel):
    """One line of plain text; its tooltip holds all of it."""

    def __init__(self, parent: QWidget | None = None, *, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(parent)
        self.full_text = ""
        self._short_text = ""
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_full_text(self, text: str, short: str = "") -> None:
        """Show as much of the text as there is room for, or a shorter text with the same meaning."""
        if (text, short) != (self.full_text, self._short_text):
            self.full_text, self._short_text = text, short
            self.setToolTip(text)
            self.updateGeometry()
            self._elide()

    def sizeHint(self) -> QSize:
        """The size of the whole text: that of an elided text would keep it short."""
        # Advances are rounded: with a little more, nothing is elided that has room.
        return QSize(self.fontMetrics().horizontalAdvance(self.full_text) + 4, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics = self.fontMetrics()
        text = self.full_text
        if self._short_text and metrics.horizontalAdvance(text) > self.width():
            text = self._short_text
        shown = metrics.elidedText(text, self._mode, self.width())
        # A letter and three dots tell nothing.
        self.setText(shown if shown == text or len(shown) > LEAST_LETTERS else "")
