"""Notice over the foot of the runs list: what was done, with its Undo, or what went wrong."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QWidget

from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row
from app.views.widgets.card import draw_card
from app.views.widgets.notice_bar import Step
from core.errors import RankdeckError

# A notice that something was done; an error stays.
SHOWN_MS: Final = 20_000
GAP: Final = 8
_TONES: Final = {"error": "error", "warning": "warning", "info": "accent", "success": "success"}


class FootNotice(QFrame):
    """Lies over the foot of its parent; it moves nothing.

    Args:
        parent: Over which it lies.
        floor: A part of the parent above which it stays.
    """

    def __init__(self, parent: QWidget, floor: QWidget) -> None:
        super().__init__(parent)
        self._kind = "info"
        self._step: Step | None = None
        self._floor = floor
        self._title, self._text = bold_label(), QLabel()
        for label in (self._title, self._text):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._button = QPushButton("Undo")
        self._button.clicked.connect(self._on_step_clicked)
        close = icon_button("close", "Dismiss this message", self.clear)
        close.setAutoRaise(True)
        head = lay_row(None, self._title, close, spacing=GAP, grow=self._title)
        head.setAlignment(close, Qt.AlignmentFlag.AlignTop)
        foot = lay_row(None, None, self._button)
        lay_column(self, head, self._text, foot, spacing=4, margins=(12, 8, 8, 8))
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self._on_timeout)
        self.hide()
        parent.installEventFilter(self)
        floor.installEventFilter(self)

    @property
    def title(self) -> str:
        """What its first line says; empty while it is hidden."""
        return self._title.text() if not self.isHidden() else ""

    @property
    def text(self) -> str:
        return self._text.text()

    @property
    def button(self) -> QPushButton:
        return self._button

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        self.say("error", error.title, f"{error.cause} {error.window_step}".strip(), step)

    def say(self, kind: str, title: str, text: str = "", step: Step | None = None) -> None:
        """Shows a message; `kind` is "error", "warning", "info" or "success"."""
        self._kind, self._step = kind, step
        self._title.setText(title)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        self._button.setVisible(step is not None)
        if step is not None:
            self._button.setText(step.label)
        self.setAccessibleName(f"{kind}: {title}")
        self.setAccessibleDescription(text)
        self.show()
        self._place()
        self.raise_()
        self.update()
        if kind == "error":
            self._timer.stop()
        else:
            self._timer.start()

    def clear(self) -> None:
        self._step = None
        self._timer.stop()
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stays where it belongs when the parent or the floor moves."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._place()
        return super().eventFilter(watched, event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_card(self, _TONES[self._kind])

    def _place(self) -> None:
        parent = self.parentWidget()
        if parent is None or self.isHidden():
            return
        width = parent.width() - 2 * GAP
        layout = self.layout()
        height = layout.totalHeightForWidth(width) if layout is not None else self.sizeHint().height()
        height = min(height, self._floor.y() - 2 * GAP)
        self.setGeometry(GAP, self._floor.y() - GAP - height, width, height)

    def _on_timeout(self) -> None:
        if self.underMouse() or self.isAncestorOf(self.window().focusWidget() or self.window()):
            self._timer.start()  # it is read or about to be used
        else:
            self.clear()

    def _on_step_clicked(self) -> None:
        step = self._step
        self.clear()
        if step is not None:
            step.act()
