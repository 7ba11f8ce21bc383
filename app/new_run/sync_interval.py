"""Sync interval of independent training: how often the devices average their weights."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QLabel, QWidget

from app.form.field_row import MARGIN
from app.widgets.build import label_grid, named
from app.widgets.steady import Slider
from core.config.run_config import FIELD_BY_NAME

# Steps between two synchronisations; to the right of the last stands "never".
STOPS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class SyncInterval(QWidget):
    """A slider from "every step" to "never".

    An interval between two stops (from the command line, or another run) is kept until the slider moves.
    """

    edited = Signal()

    def __init__(self, label_width: int = 0) -> None:
        super().__init__()
        self._every: int | None = None
        self._name = QLabel("Synchronise")
        tip = f"{FIELD_BY_NAME['sync_every'].help}\nLeft: at every step, close to DDP. Right: never."
        self.slider = named(Slider(), "Sync interval in steps", tip)
        self.slider.setRange(0, len(STOPS))
        self.slider.setPageStep(1)
        self.slider.setTickPosition(Slider.TickPosition.TicksBelow)
        self.slider.setTickInterval(1)
        self.slider.setObjectName("field_sync_every")
        self.value = QLabel()
        self.slider.valueChanged.connect(self._on_moved)
        self._name.setBuddy(self.slider)
        grid = label_grid(self, label_width, indent=MARGIN, top=4)
        grid.addWidget(self._name, 0, 0)
        grid.addWidget(self.value, 0, 1)
        grid.addWidget(self.slider, 1, 0, 1, 2)
        self.set_every(None)

    def every(self) -> int | None:
        return self._every

    def set_every(self, every: int | None) -> None:
        """Show an interval, at the slider's nearest stop."""
        self._every = every
        with QSignalBlocker(self.slider):
            self.slider.setValue(len(STOPS) if every is None else min(bisect_left(STOPS, every), len(STOPS) - 1))
        self._show()

    def _show(self) -> None:
        text = "never" if self._every is None else "every step" if self._every == 1 else f"every {self._every:,} steps"
        self.value.setText(text)
        self.slider.setAccessibleDescription(text)

    def _on_moved(self, place: int) -> None:
        self._every = None if place >= len(STOPS) else STOPS[place]
        self._show()
        self.edited.emit()
