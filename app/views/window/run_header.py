"""The right half of the toolbar: state, step, progress, time left and tokens a second, readable from two metres."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget

from app.state.run_summary import RunSummary
from app.views.style.fonts import tabular
from app.views.style.icons import icon
from app.views.style.palette import STATE_TONES, state_colour
from app.views.widgets.build import bold_label, lay_row, named
from app.views.widgets.elided_label import ElidedLabel
from core.formatting import UNKNOWN, count, duration, rate
from core.run_folder.state import LIVE_STATES

_ICON_PX: Final = 20
_TEMPLATES: Final = {
    "step": "epoch 00 · step 000,000 / 000,000",
    "left": "00 m 00 s left",
    "rate": "000 k tok/s",
}


class RunHeader(QWidget):
    """State as sign and word, then the figures, each in a place that does not move while they run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._summary = RunSummary()
        self._notes: tuple[str, ...] = ()
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON_PX, _ICON_PX)
        self.state = bold_label()
        # In a toolbar a label would take the buttons' text colour.
        self.state.setForegroundRole(QPalette.ColorRole.WindowText)
        self.detail = ElidedLabel()
        self.detail.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.bar = named(QProgressBar(textVisible=False, minimum=0, maximum=1000), "Progress")
        self.bar.setMinimumWidth(96)
        self.bar.setMaximumWidth(280)
        self.bar.setFixedHeight(8)
        self.step, self.left, self.rate = (self._figure(name) for name in _TEMPLATES)
        parts = (self._icon, self.state, self.detail, self.step, self.bar, self.left, self.rate)
        row = lay_row(self, *parts, spacing=8, margins=(8, 0, 8, 0), grow=self.detail)
        row.setStretchFactor(self.bar, 1)
        self.show_summary(RunSummary())

    def _figure(self, name: str) -> QLabel:
        label = QLabel()
        label.setFont(tabular(label.font()))
        label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        label.setMinimumWidth(label.fontMetrics().horizontalAdvance(_TEMPLATES[name]) + 4)
        return label

    def show_summary(self, summary: RunSummary) -> None:
        """Shows a run's state; an idle window shows only the word."""
        if summary.word != self._summary.word or self._icon.pixmap().isNull():
            self._show_sign(summary.word)
        self._summary = summary
        self.state.setText(summary.word.capitalize())
        self.detail.set_full_text(summary.detail)
        self.show_notes(self._notes)
        there = summary.step is not None
        live = summary.word in LIVE_STATES
        for widget in (self.step, self.bar):
            widget.setVisible(there)
        for widget in (self.left, self.rate):
            widget.setVisible(there and live)
        of = f" / {count(summary.total_steps)}" if summary.total_steps else ""
        epoch = f"epoch {summary.epoch} · " if summary.epoch is not None else ""
        self.step.setText(f"{epoch}step {count(summary.step)}{of}")
        share = summary.share
        self.bar.setValue(0 if share is None else math.floor(share * 1000))
        self.bar.setAccessibleDescription(f"{UNKNOWN if share is None else f'{share:.0%}'} of the steps")
        left = summary.seconds_left
        self.left.setText(f"{duration(left)} left" if left is not None else "")
        self.rate.setText(rate(summary.tokens_per_s, "tok/s"))

    def show_notes(self, notes: Sequence[str]) -> None:
        """How the devices share the work, as the tooltip of the detail."""
        self._notes = tuple(notes)
        self.detail.setToolTip("\n".join(part for part in (self._summary.detail, *self._notes) if part))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._show_sign(self._summary.word)
        super().changeEvent(event)

    def _show_sign(self, word: str) -> None:
        name = f"state-{word}" if word in STATE_TONES and word not in ("pausing", "damaged") else "state-unreadable"
        self._icon.setPixmap(icon(name, STATE_TONES.get(word, "muted")).pixmap(_ICON_PX, _ICON_PX))
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.WindowText, state_colour(word, self.palette()))
        self.state.setPalette(palette)
