"""A label that takes what room is left, has an ellipsis where that is too little, and is empty where it is none."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

LEAST_LETTERS: Final = 5


class ElidedLabel(QLabel):
    """One line of plain text; its tooltip holds all of it.

    Args:
        parent: Qt owner.
        mode: Where letters are left out.
    """

    def __init__(self, parent: QWidget | None = None, *, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(parent)
        self.full_text = ""
        self._short_text = ""
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_full_text(self, text: str, short: str = "") -> None:
        """Shows as much of the text as there is room for, or of a shorter one that says the same."""
        if (text, short) != (self.full_text, self._short_text):
            self.full_text, self._short_text = text, short
            self.setToolTip(text)
            self.updateGeometry()
            self._elide()

    def sizeHint(self) -> QSize:
        """Size of the whole text: the size of an elided text would keep it short."""
        return QSize(self.fontMetrics().horizontalAdvance(self.full_text), super().sizeHint().height())

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
