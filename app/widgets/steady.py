"""Combo boxes, sliders and tabs that the wheel scrolls past. Those of Qt are banned (pyproject.toml).

Qt's own change their value under a pointer that only scrolls the page: a wheel over New run turned ZeRO stage 1
into 3. Those here take the wheel only with the keyboard's focus, which the wheel does not give them; a combo box
never does, since its open list is a window of its own. An event that is ignored goes to the parent, which scrolls.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QSlider, QTabBar, QWidget


class ComboBox(QComboBox):
    """A combo box without the wheel."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # Qt's is WheelFocus

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Slider(QSlider):
    """A horizontal slider without the wheel, unless it has the focus."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class TabBar(QTabBar):
    """A tab bar without the wheel, unless it has the focus."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        super().wheelEvent(event) if self.hasFocus() else event.ignore()
