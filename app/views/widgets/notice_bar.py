"""A bar that says something in the place it concerns: an error with its next step, or a plain notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.views.style.icons import icon
from app.views.style.tones import tint, tone
from core.errors import RankdeckError

_SIGN: Final = {"error": "error", "warning": "warning", "info": "info", "success": "state-finished"}
_ICON_PX: Final = 20


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
        self._title = QLabel()
        font = self._title.font()
        font.setBold(True)
        self._title.setFont(font)
        self._text = QLabel()
        for label in (self._title, self._text):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._button = QPushButton("Next step")
        self._button.setObjectName("step")
        self._button.clicked.connect(self._on_step_clicked)
        self._close = QToolButton()
        self._close.setIcon(icon("close"))
        self._close.setAutoRaise(True)
        self._close.setToolTip("Dismiss this message")
        self._close.setAccessibleName("Dismiss this message")
        self._close.clicked.connect(self.clear)
        self._lay_out()
        self.hide()

    def _lay_out(self) -> None:
        lines = QVBoxLayout()
        lines.setSpacing(2)
        lines.addWidget(self._title)
        lines.addWidget(self._text)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(12)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(lines, 1)
        row.addWidget(self._button, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
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
        self.say("error", error.title, f"{error.cause} {error.window_step}".strip(), step)

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

    def changeEvent(self, event: QEvent) -> None:
        """Redraws the sign when light turns to dark."""
        if event.type() == QEvent.Type.PaletteChange:
            self._icon.setPixmap(icon(_SIGN[self._kind], self._kind).pixmap(_ICON_PX, _ICON_PX))
        super().changeEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A tinted ground with a stronger left edge."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), tint(self.palette(), self._kind))
        painter.fillRect(0, 0, 4, self.height(), tone(self.palette(), self._kind))
        painter.setPen(QPen(tint(self.palette(), self._kind).darker(112), 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)

    def _on_step_clicked(self) -> None:
        if self._step is not None:
            self._step.act()
