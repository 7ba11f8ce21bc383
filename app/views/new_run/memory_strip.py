"""Memory strip: whether the run fits and how long it takes, every mode beside it, and buttons that make it fit."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.state.memory_text import MemoryText, ModeLine, RemedyText
from app.views.style.fonts import tabular
from app.views.widgets.build import lay_column, lay_row, muted_label, named, scrolled
from app.views.widgets.buttons import Chip, chip
from app.views.widgets.disclosure import Disclosure
from app.views.widgets.tone_label import ToneLabel

_COLUMN_GAP: Final = 16
_CHIPS_A_ROW: Final = 3


class MemoryStrip(QWidget):
    """One line, opened by a button to a line for every mode. It never stops a start.

    Signals:
        remedy_requested: ``dict``: settings and their new values (`core.estimate.remedies.Remedy.changes`).
    """

    remedy_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.verdict = ToneLabel()
        font = self.verdict.font()
        font.setWeight(QFont.Weight.DemiBold)
        self.verdict.setFont(font)
        self.verdict.setWordWrap(False)
        self.devices = muted_label()
        self.devices.setFont(tabular(self.devices.font()))
        self.note = muted_label()
        self.time = muted_label()
        self.time.setFont(tabular(self.time.font()))
        self.advice = QLabel()
        self.advice.setWordWrap(True)
        self.toggle = named(Disclosure("", "Show what every mode needs"), "Memory and time in every mode")
        self.modes = QWidget()
        self._rows: list[_ModeRow] = []
        self._grid = QGridLayout(self.modes)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setHorizontalSpacing(_COLUMN_GAP)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(3, 1)
        self.totals = muted_label()
        self.remedies = FitChips()
        self.remedies.chosen.connect(self.remedy_requested)
        content = QWidget()
        lay_column(content, self.modes, self.totals)
        self._body = scrolled(content)  # in a low window the form keeps some room
        self._body.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._body.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        head = lay_row(None, self.verdict, self.devices, self.toggle, spacing=8, grow=self.devices)
        for part in (self.verdict, self.devices, self.toggle):
            head.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        lay_column(self, head, self.note, self.remedies, self.time, self.advice, self._body, spacing=4)
        self._body.hide()
        self.toggle.toggled.connect(self._body.setVisible)
        self.show_memory(None)

    def show_memory(self, text: MemoryText | None) -> None:
        """Shows an estimate; nothing where there is nothing to estimate."""
        self.setVisible(text is not None)
        shown = text or MemoryText("", "muted")
        self.verdict.say(shown.verdict, shown.tone)
        self.devices.setText(shown.devices)
        self.note.setText(shown.note)
        self.note.setVisible(bool(shown.note))
        for label, sentence in ((self.time, shown.time), (self.advice, shown.advice)):
            label.setText(sentence)
            label.setVisible(bool(sentence))
        self.toggle.setVisible(bool(shown.modes))
        self._body.setVisible(self.toggle.isChecked() and bool(shown.modes))
        self._show_modes(shown.modes)
        self.totals.setText("\n".join(shown.totals))
        self.remedies.show_remedies(shown.remedies)

    def _show_modes(self, modes: tuple[ModeLine, ...]) -> None:
        """Fills the rows that are there again, so that nothing flickers."""
        while len(self._rows) < len(modes):
            row = _ModeRow()
            for column, label in enumerate(row.labels):
                self._grid.addWidget(label, len(self._rows), column)
            self._rows.append(row)
        for number, row in enumerate(self._rows):
            row.show_mode(modes[number] if number < len(modes) else None)


class FitChips(QWidget):
    """Small buttons for what would make the run fit. Hidden while there are none.

    Signals:
        chosen: ``dict``: the changes of the one that was clicked.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: list[Chip] = []
        self._shown: tuple[RemedyText, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setSpacing(8)
        self._grid.setColumnStretch(_CHIPS_A_ROW, 1)
        self.hide()

    def show_remedies(self, remedies: tuple[RemedyText, ...]) -> None:
        """Offers these; those that are there already stay, with their focus."""
        if remedies != self._shown:
            self._shown = remedies
            for old in self.buttons:
                self._grid.removeWidget(old)
                old.hide()
                old.deleteLater()
            self.buttons = [self._button(number, remedy) for number, remedy in enumerate(remedies)]
        self.setVisible(bool(remedies))

    def _button(self, number: int, remedy: RemedyText) -> Chip:
        button = chip(remedy.label, remedy.tip)
        button.setAccessibleDescription(remedy.tip)
        button.clicked.connect(lambda: self.chosen.emit(dict(remedy.changes)))
        self._grid.addWidget(button, *divmod(number, _CHIPS_A_ROW))
        return button


class _ModeRow:
    """A mode's name, need, verdict and time; what they are made of is their tooltip."""

    def __init__(self) -> None:
        self.name, self.need, self.verdict, self.time = QLabel(), QLabel(), ToneLabel(), QLabel()
        for figures in (self.need, self.time):
            figures.setFont(tabular(figures.font()))
        self.need.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.labels = (self.name, self.need, self.verdict, self.time)

    def show_mode(self, line: ModeLine | None) -> None:
        """Shows a mode, or nothing."""
        self.name.setText("" if line is None else line.name)
        self.need.setText("" if line is None else line.need)
        self.time.setText("" if line is None else line.time)
        self.verdict.say("" if line is None else line.verdict, "muted" if line is None else line.tone)
        font = self.name.font()
        font.setBold(line is not None and line.is_chosen)
        self.name.setFont(font)
        for label in self.labels:
            label.setToolTip("" if line is None else line.parts)
            label.setAccessibleDescription("" if line is None else line.parts)
