"""Disclosure: a line with a chevron that unfolds the content below it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStyle, QStyleOptionToolButton, QToolButton

from app.style.icons import icon


class Disclosure(QToolButton):
    """Checked while its content is shown; only the chevron says so, since a filled box looks like a setting."""

    def __init__(self, text: str, tooltip: str) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setAutoRaise(True)
        self.setIcon(icon("chevron-right"))
        self.setToolTip(tooltip)
        if text:
            self.setText(text)
            self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.toggled.connect(self._turn)

    def initStyleOption(self, option: QStyleOptionToolButton) -> None:
        super().initStyleOption(option)
        option.state &= ~QStyle.StateFlag.State_On

    def _turn(self, on: bool) -> None:
        self.setIcon(icon("chevron-down" if on else "chevron-right"))
