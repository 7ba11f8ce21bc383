"""Message: a title and a text beside the sign of their kind, buttons, and one to dismiss it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QBoxLayout, QFrame, QLabel, QWidget

from app.widgets.build import bold_label, icon_button, lay_column, lay_row
from app.widgets.tone_label import SignLabel

_SIGNS: Final = {"error": "error", "warning": "warning", "info": "info", "success": "state-finished"}
_ICON_PX: Final = 20


class Message(QFrame):
    """Hidden until a message is shown. Below the width `narrow` the buttons stand below the text."""

    def __init__(self, buttons: Sequence[QAbstractButton], narrow: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = "info"
        self._narrow = narrow
        self._icon = SignLabel(_ICON_PX)
        self._title = bold_label()
        self._text = QLabel()
        for label in (self._title, self._text):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.close_button = icon_button("close", "Dismiss this message", self.clear)
        self.close_button.setAutoRaise(True)
        self._buttons = lay_row(None, *buttons, None, spacing=8)
        self._parts = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._parts.setSpacing(8)
        self._texts = lay_column(None, self._title, self._text, spacing=2)
        self._parts.addLayout(self._texts, 1)
        self._parts.addLayout(self._buttons)
        parts = (self._icon, self._parts, self.close_button)
        row = lay_row(self, *parts, spacing=12, margins=(12, 8, 8, 8), grow=self._parts)
        for part in (self._icon, self.close_button):
            row.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self.hide()

    @property
    def title(self) -> str:
        return self._title.text() if not self.isHidden() else ""

    @property
    def text(self) -> str:
        return self._text.text()

    def show_message(self, kind: str, title: str, text: str) -> None:
        """Say something; `kind` is "error", "warning", "info" or "success"."""
        self.kind = kind
        self._title.setText(title)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        self._icon.show_sign(_SIGNS[kind], kind)
        self.setAccessibleName(f"{kind}: {title}")
        self.setAccessibleDescription(text)
        # While it is hidden its own width says nothing.
        parent = self.parentWidget()
        self.fit_to(parent.width() if self.isHidden() and parent is not None else self.width())
        self.update()
        self.show()

    def clear(self) -> None:
        self.hide()

    def fit_to(self, width: int) -> None:
        """Put the buttons below the text where they would squeeze it, else beside it."""
        is_narrow = width < max(self._narrow, 2 * self._buttons.sizeHint().width())
        ways = QBoxLayout.Direction
        way = ways.TopToBottom if is_narrow else ways.LeftToRight
        if way != self._parts.direction():
            self._parts.setDirection(way)
            # The height that was found for this width is another one now.
            self.updateGeometry()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_to(self.width())
