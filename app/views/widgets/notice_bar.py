"""A bar that says something in the place it concerns: an error with its next step, or a plain notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QWidget

from app.views.style.icons import icon
from app.views.style.tones import tint, tone
from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row
from core.errors import RankdeckError, sentences

_SIGN: Final = {"error": "error", "warning": "warning", "info": "info", "success": "state-finished"}
_ICON_PX: Final = 20
_NARROW: Final = 560
"""Below this width a button beside the text would squeeze it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A button in the bar that does the next step.

    Attributes:
        label: What the button says, with its mnemonic.
        act: What it does.
    """

    label: str
    act: Callable[[], None]


class NoticeBar(QFrame):
    """Title, cause, next step, and a button for the step where there is one. Hidden until something is said."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = "info"
        self._step: Step | None = None
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON_PX, _ICON_PX)
        self._title = bold_label()
        self._text = QLabel()
        for label in (self._title, self._text):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._button = QPushButton("Next step")
        self._button.setObjectName("step")
        self._button.clicked.connect(self._on_step_clicked)
        self._close = icon_button("close", "Dismiss this message", self.clear)
        self._close.setAutoRaise(True)
        self._lines = lay_column(None, self._title, self._text, spacing=2)
        parts = (self._icon, self._lines, self._button, self._close)
        self._row = lay_row(self, *parts, spacing=12, margins=(12, 8, 8, 8), grow=self._lines)
        self._is_narrow = False
        for part in (self._icon, self._close):
            self._row.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self._row.setAlignment(self._button, Qt.AlignmentFlag.AlignVCenter)
        self.hide()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    @property
    def title(self) -> str:
        """What the bar's first line says; empty while it says nothing."""
        return self._title.text() if not self.isHidden() else ""

    @property
    def text(self) -> str:
        """Cause and next step, as shown."""
        return self._text.text()

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        """Says what went wrong, why, and what to do."""
        self.say("error", error.title, sentences(error.cause, error.window_step), step)

    def say(self, kind: str, title: str, text: str, step: Step | None = None) -> None:
        """Shows a message; `kind` is "error", "warning", "info" or "success"."""
        self._kind = kind
        self._step = step
        self._title.setText(title)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        self._button.setVisible(step is not None)
        if step is not None:
            self._button.setText(step.label)
        self._icon.setPixmap(icon(_SIGN[kind], kind).pixmap(_ICON_PX, _ICON_PX))
        self.setAccessibleName(f"{kind}: {title}")
        self.setAccessibleDescription(text)
        self.show()

    def clear(self) -> None:
        """Takes the message away."""
        self._step = None
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_to(self.width())

    def fit_to(self, width: int) -> None:
        """Puts the button below the text where it would squeeze it, beside it elsewhere."""
        if (width < _NARROW) == self._is_narrow:
            return
        self._is_narrow = width < _NARROW
        (self._row if self._is_narrow else self._lines).removeWidget(self._button)
        if self._is_narrow:
            self._lines.addWidget(self._button, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._row.insertWidget(2, self._button, 0, Qt.AlignmentFlag.AlignVCenter)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._icon.setPixmap(icon(_SIGN[self._kind], self._kind).pixmap(_ICON_PX, _ICON_PX))
        super().changeEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), tint(self.palette(), self._kind))
        painter.fillRect(0, 0, 4, self.height(), tone(self.palette(), self._kind))
        painter.setPen(QPen(tint(self.palette(), self._kind).darker(112), 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)

    def _on_step_clicked(self) -> None:
        if self._step is not None:
            self._step.act()
