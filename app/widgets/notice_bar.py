"""Notice bar: an error with its next step, or a plain notice, in the place that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.style.tones import tint, tone
from app.widgets.message import Message
from core.errors import RankdeckError, sentences

# Below this width a button beside the text would squeeze it.
_NARROW: Final = 560


@dataclass(frozen=True, slots=True)
class Step:
    """A button that carries out the next step; `label` has its mnemonic."""

    label: str
    act: Callable[[], None]


class NoticeBar(Message):
    """Title, cause, next step, and a button for the step. Hidden until there is a message."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._step: Step | None = None
        self.button = QPushButton("Next step")
        self.button.setObjectName("step")
        super().__init__([self.button], _NARROW, parent)
        self.button.clicked.connect(self._on_step_clicked)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_error(self, error: RankdeckError, step: Step | None = None) -> None:
        self.say("error", error.title, sentences(error.cause, error.window_step), step)

    def say(self, kind: str, title: str, text: str = "", step: Step | None = None) -> None:
        """Show a message; `kind` is "error", "warning", "info" or "success"."""
        self._step = step
        self.button.setVisible(step is not None)
        if step is not None:
            self.button.setText(step.label)
        self.show_message(kind, title, text)

    def clear(self) -> None:
        self._step = None
        super().clear()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), tint(self.palette(), self.kind))
        painter.fillRect(0, 0, 4, self.height(), tone(self.palette(), self.kind))
        painter.setPen(QPen(tint(self.palette(), self.kind).darker(112), 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)

    def _on_step_clicked(self) -> None:
        if self._step is not None:
            self._step.act()
