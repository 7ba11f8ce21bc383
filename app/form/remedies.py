"""Remedies: buttons under a problem that carry out its next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from PySide6.QtWidgets import QPushButton, QWidget

from app.widgets.build import lay_row
from app.widgets.notice_bar import Step
from core.errors import RankdeckError

# What can be done about an error.
RemediesFor: TypeAlias = Callable[[RankdeckError], Sequence[Step]]


class Remedies(QWidget):
    """Buttons in a row. Hidden while there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[str, ...] = ()
        self._steps: Sequence[Step] = ()
        self.buttons: list[QPushButton] = []
        self._row = lay_row(self, spacing=8, margins=(0, 0, 0, 4))
        self.hide()

    def set_steps(self, steps: Sequence[Step]) -> None:
        """Show these buttons; those with the same label stay, with their focus."""
        self._steps = steps
        labels = tuple(step.label for step in steps)
        if labels != self._shown:
            self._shown = labels
            while (item := self._row.takeAt(0)) is not None:
                if (old := item.widget()) is not None:
                    old.deleteLater()
            self.buttons = [self._button(number, label) for number, label in enumerate(labels)]
            self._row.addStretch(1)
        self.setVisible(bool(labels))

    def _button(self, number: int, label: str) -> QPushButton:
        button = QPushButton(label)
        button.setObjectName("step")
        button.clicked.connect(lambda: self._steps[number].act())
        self._row.addWidget(button)
        return button
