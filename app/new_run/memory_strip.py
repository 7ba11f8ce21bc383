"""Memory strip: the verdict on the run's memory, its time, every mode beside it, and buttons that make it fit."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QMessageBox, QSizePolicy, QWidget

from app.draft.memory_text import INCOMPLETE, MemoryText, ModeLine
from app.style.fonts import tabular
from app.style.icons import icon
from app.widgets.build import lay_column, lay_row, muted_label, named, scrolled
from app.widgets.buttons import Chip
from app.widgets.card import Card
from app.widgets.disclosure import Disclosure
from app.widgets.elided_label import ElidedLabel
from app.widgets.tone_label import ToneLabel
from core.measure.estimate.remedies import Remedy

_COLUMN_GAP: Final = 16
_CHIPS_A_ROW: Final = 3
_NO_MODE: Final = ModeLine("", "", "", "muted", "", is_chosen=False)


class MemoryStrip(Card):
    """The verdict in two lines, with the one remedy that is mildest: as high whatever it says.

    Attributes:
        toggle: Unfolds `body`; the foot places both.
        body: Every mode, the machine's memory, other remedies, time and advice.

    Signals:
        remedy_requested: ``dict``: settings and their new values (`core.measure.estimate.remedies.Remedy.changes`).
    """

    remedy_requested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.verdict = ToneLabel()
        self.figure = ElidedLabel()
        for label in (self.verdict, self.figure):
            font = tabular(label.font())
            font.setWeight(QFont.Weight.DemiBold)
            label.setFont(font)
        self.verdict.setWordWrap(False)
        self.detail = ElidedLabel()
        self.detail.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.remedies, self.more = FitChips(1), FitChips(_CHIPS_A_ROW)
        for chips in (self.remedies, self.more):
            chips.chosen.connect(self.remedy_requested)
        head = lay_row(None, self.verdict, self.figure, spacing=8, grow=self.figure)
        lines = lay_column(None, head, self.detail, spacing=2)
        lay_row(self, lines, self.remedies, spacing=8, margins=(12, 5, 10, 5), grow=lines)
        self._keep_height()
        self._make_body()
        self.show_memory(INCOMPLETE)

    def _keep_height(self) -> None:
        """Keep the height of two lines and their margins; a button beside them is lower than that."""
        self.setFixedHeight(2 * self.figure.fontMetrics().lineSpacing() + 2 + 2 * 8)

    def _make_body(self) -> None:
        self.note, self.time = muted_label(), muted_label()
        self.time.setFont(tabular(self.time.font()))
        self.advice = QLabel(wordWrap=True)
        self.toggle = named(Disclosure("", "Show what every mode needs"), "Memory and time in every mode")
        self.modes = QWidget()
        self._rows: list[_ModeRow] = []
        self._grid = QGridLayout(self.modes)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setHorizontalSpacing(_COLUMN_GAP)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(3, 1)
        self.totals = muted_label()
        content = QWidget()
        self.content = lay_column(
            content, self.note, self.more, self.modes, self.totals, self.time, self.advice, spacing=4
        )
        self.body = scrolled(content)  # in a low window the form keeps some room
        self.body.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.body.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.body.hide()
        self.toggle.toggled.connect(self.body.setVisible)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._keep_height()
        super().changeEvent(event)

    def show_memory(self, text: MemoryText) -> None:
        self.set_edge("" if text.tone == "muted" else text.tone)
        self.verdict.say(text.verdict, text.tone)
        self.figure.set_full_text(text.figure)
        self.detail.set_full_text(text.detail)
        self.setAccessibleName(f"{text.verdict} {text.figure}. {text.detail}")
        for label, sentence in ((self.note, text.note), (self.time, text.time), (self.advice, text.advice)):
            label.setText(sentence)
            label.setVisible(bool(sentence))
        self._show_modes(text.modes)
        self.totals.setText("\n".join(text.totals))
        self.remedies.show_remedies(text.remedies[:1])
        self.more.show_remedies(text.remedies[1:])

    def _show_modes(self, modes: tuple[ModeLine, ...]) -> None:
        """Fill the existing rows again, so that nothing flickers."""
        while len(self._rows) < len(modes):
            row = _ModeRow()
            for column, label in enumerate(row.labels):
                self._grid.addWidget(label, len(self._rows), column)
            self._rows.append(row)
        for number, row in enumerate(self._rows):
            row.show_mode(modes[number] if number < len(modes) else _NO_MODE)


class FitQuestion(QMessageBox):
    """Question whether a run that does not fit is to be started all the same; `start_chosen`: it is."""

    start_chosen = Signal()

    def __init__(self, text: MemoryText, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("New run")
        self.setIconPixmap(icon("warning", "warning").pixmap(32, 32))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(f"{text.verdict}: {text.figure}.")
        self.setInformativeText("The run will probably fail when memory runs out. Start it anyway?")
        self.start = self.addButton("&Start anyway", QMessageBox.ButtonRole.AcceptRole)
        self.cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.setDefaultButton(self.cancel)
        self.setEscapeButton(self.cancel)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.start.clicked.connect(self.start_chosen)


class FitChips(QWidget):
    """Small buttons that make the run fit. Hidden while there are none.

    Args:
        in_row: Number of buttons in a row.

    Signals:
        chosen: ``dict``: the changes of the one that was clicked.
    """

    chosen = Signal(object)

    def __init__(self, in_row: int) -> None:
        super().__init__()
        self._in_row = in_row
        self.buttons: list[Chip] = []
        self._shown: tuple[Remedy, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self._grid.setColumnStretch(in_row, 1)
        self.hide()

    def show_remedies(self, remedies: tuple[Remedy, ...]) -> None:
        """Show these; existing buttons stay, with their focus."""
        if remedies != self._shown:
            self._shown = remedies
            for old in self.buttons:
                self._grid.removeWidget(old)
                old.hide()
                old.deleteLater()
            self.buttons = [self._button(number, remedy) for number, remedy in enumerate(remedies)]
        self.setVisible(bool(remedies))

    def _button(self, number: int, remedy: Remedy) -> Chip:
        button = Chip(remedy.label, remedy.tip)
        button.setAccessibleDescription(remedy.tip)
        button.clicked.connect(lambda: self.chosen.emit(dict(remedy.changes)))
        self._grid.addWidget(button, *divmod(number, self._in_row))
        return button


class _ModeRow:
    """A mode's name, need, verdict and time, with their parts as tooltip."""

    def __init__(self) -> None:
        self.name, self.need, self.verdict, self.time = QLabel(), QLabel(), ToneLabel(), QLabel()
        for figures in (self.need, self.time):
            figures.setFont(tabular(figures.font()))
        self.need.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.labels = (self.name, self.need, self.verdict, self.time)

    def show_mode(self, line: ModeLine) -> None:
        self.name.setText(line.name)
        self.need.setText(line.need)
        self.time.setText(line.time)
        self.verdict.say(line.verdict, line.tone)
        font = self.name.font()
        font.setBold(line.is_chosen)
        self.name.setFont(font)
        for label in self.labels:
            label.setToolTip(line.parts)
            label.setAccessibleDescription(line.parts)
