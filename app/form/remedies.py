"""Remedies: buttons under a problem that carry out its next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QPushButton, QWidget

from app.widgets.notice_bar import Step
from core.errors import RankdeckError

# What can be done about an error.
RemediesFor: TypeAlias = Callable[[RankdeckError], Sequence[Step]]
_GAP: Final = 8


class Remedies(QWidget):
    """Buttons in a row, or in a column where they would not fit. Hidden while there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[str, ...] = ()
        self._steps: Sequence[Step] = ()
        self.buttons: list[QPushButton] = []
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._box.setContentsMargins(0, 0, 0, 4)
        self._box.setSpacing(_GAP)
        self.hide()

    def set_steps(self, steps: Sequence[Step]) -> None:
        """Show these buttons; those with the same label stay, with their focus."""
        self._steps = steps
        labels = tuple(step.label for step in steps)
        if labels != self._shown:
            self._shown = labels
            while (item := self._box.takeAt(0)) is not None:
                if (old := item.widget()) is not None:
                    old.deleteLater()
            self.buttons = [self._button(number, label) for number, label in enumerate(labels)]
            self._box.addStretch(1)
            self._turn()
        self.setVisible(bool(labels))

    def _button(self, number: int, label: str) -> QPushButton:
        button = QPushButton(label)
        button.setObjectName("step")
        button.clicked.connect(lambda: self._steps[number].act())
        self._box.addWidget(button)
        return button

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

    def _turn(self) -> None:
        needed = sum(button.sizeHint().width() + _GAP for button in self.buttons)
        fits = needed <= self.width()
        direction = QBoxLayout.Direction.LeftToRight if fits else QBoxLayout.Direction.TopToBottom
        if direction != self._box.direction():
            self._box.setDirection(direction)
