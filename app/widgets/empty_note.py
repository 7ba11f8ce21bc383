"""Empty state of a view: one centred sentence that says what will appear."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedLayout, QWidget

from app.widgets.build import muted_label


class WithNote(QWidget):
    """Shows `body`, or a sentence in its place while it is empty."""

    def __init__(self, body: QWidget, sentence: str) -> None:
        super().__init__()
        self.note = muted_label(sentence)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setContentsMargins(24, 12, 24, 12)
        self._body = body
        self._pages = QStackedLayout(self)
        self._pages.addWidget(self.note)
        self._pages.addWidget(body)

    def set_empty(self, empty: bool, sentence: str | None = None) -> None:
        if sentence is not None:
            self.note.setText(sentence)
        self._pages.setCurrentWidget(self.note if empty else self._body)

    @property
    def is_empty(self) -> bool:
        return self._pages.currentWidget() is self.note
