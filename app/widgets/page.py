"""Page that takes the place of a run in the window, such as the check of this machine; Escape closes it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

LEAST_WIDTH: Final = 560


class Page(QWidget):
    """The base of such a page."""

    close_requested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_requested.emit()
        else:
            super().keyPressEvent(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_WIDTH, 200)
