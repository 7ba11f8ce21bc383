"""Foot of the New run sheet: what the settings come to, the command line that does the same, and Start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFontDatabase, QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QPushButton, QWidget

from app.state.draft import CheckedDraft
from app.views.new_run.memory_strip import MemoryStrip
from app.views.new_run.tune_row import TuneRow
from app.views.style.fonts import tabular
from app.views.style.icons import icon
from app.views.style.tones import rule, tone
from app.views.widgets.action_buttons import PrimaryActionButton
from app.views.widgets.build import icon_button, lay_column, lay_row, muted_label, named
from core.config.mode import Mode
from core.formatting import count, parameters_text
from core.recipes.parameter_count import ParameterCount

COPIED_MS: Final = 1500
_START_WIDTH: Final = 120
_MOST_NOTES: Final = 2


class SummaryLines(QFrame):
    """Always current: global = micro × ranks × accumulation, the model's size, steps an epoch, memory, command, Start.

    Args:
        start: What the big button does; None leaves it out.

    Signals:
        fix_requested: The line that counts wrong settings was clicked.
    """

    fix_requested = Signal()

    def __init__(self, start: QAction | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.arithmetic = QLabel(wordWrap=True)
        self.arithmetic.setFont(tabular(self.arithmetic.font()))
        self.fix = FixButton()
        self.fix.setToolTip("Go to the first of them")
        self.fix.clicked.connect(self.fix_requested)
        self.fix.hide()
        self.facts = muted_label()
        self._known: tuple[str, ...] = ("", "")
        self.memory = MemoryStrip()
        self.tune = TuneRow()
        self.notes = muted_label()
        self.notes.setTextFormat(Qt.TextFormat.PlainText)
        self.waiting = muted_label()
        self._full_notes: tuple[str, ...] = ()
        self.command = named(QLineEdit(readOnly=True, placeholderText="Command line"), "Equivalent command line")
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        tip = "Copy the equivalent command line"
        self.copy = icon_button("copy", tip, self._on_copy_clicked, "Copy the command line")
        self._back = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._back.timeout.connect(lambda: self.copy.setIcon(icon("copy")))
        self.start = None if start is None else PrimaryActionButton(start)
        command = lay_row(None, self.command, self.copy, spacing=4, grow=self.command)
        row = lay_row(None, command, spacing=12, grow=command)
        if self.start is not None:
            self.start.setMinimumWidth(_START_WIDTH)
            row.addWidget(self.start)
        parts = (self.arithmetic, self.facts, self.memory, self.tune, self.notes, self.waiting, self.fix, row)
        body = lay_column(None, *parts, spacing=4, margins=(16, 8, 12, 12))
        body.setAlignment(self.fix, Qt.AlignmentFlag.AlignLeft)
        lay_column(self, Line(), body)

    def show_checked(self, checked: CheckedDraft, steps_per_epoch: int | None, ranks: int = 1) -> None:
        """Shows a draft's arithmetic; while something is wrong, how many things are.

        Args:
            checked: The draft.
            steps_per_epoch: None while that is not known.
            ranks: Devices that are ticked.
        """
        batch, text, epoch = checked.batch, "", ""
        tip = "Samples per optimizer step = micro-batch × devices × accumulation"
        if batch is not None:
            apart = " per device" if checked.mode == Mode.INDEPENDENT else ""
            factors = f"{count(batch.micro)} × {batch.ranks} × {count(batch.accumulation)}"
            text = f"Global batch {count(batch.global_)} = {factors}{apart}"
            if checked.machines > 1:
                text += f" on {checked.machines} machines"
                tip += f"\nThe other machines are taken to have as many devices as this computer: {ranks}"
            if steps_per_epoch:
                epoch = f"≈ {count(steps_per_epoch)} {'step' if steps_per_epoch == 1 else 'steps'} per epoch"
        elif checked.config is not None and checked.machines > 1:
            text = f"Global batch {count(checked.config.global_batch_size or 0)}, shared by all machines"
            tip = f"{checked.machines} machines like this computer could not share it evenly; others may"
        elif checked.config is not None:
            text = "1 process" if ranks == 1 else f"{count(ranks)} processes, one per device"
            tip = "The program sets its own batch size"
        wrong = len(checked.problems)
        self.fix.setText(f"✕ Fix {wrong} {'setting' if wrong == 1 else 'settings'} to start")
        self.arithmetic.setText(text)
        self.arithmetic.setToolTip(tip)
        self.arithmetic.setVisible(bool(text))
        self._show_facts(self._known[0], epoch)
        self.fix.setVisible(bool(wrong))
        if self.command.text() != checked.command:
            self.command.setText(checked.command)
            self.command.setCursorPosition(0)
        self.command.setToolTip(checked.command)
        self.copy.setEnabled(bool(checked.command))
        why_not = checked.waiting or "Fix the marked settings to get a command"
        self.copy.setToolTip("Copy the equivalent command line" if checked.command else why_not)

    def show_parameters(self, count: ParameterCount | None) -> None:
        """Shows how large the model is; nothing while that is not known."""
        self._show_facts("" if count is None else parameters_text(count.total, count.trained), self._known[1])

    def _show_facts(self, *facts: str) -> None:
        self._known = facts
        text = " · ".join(fact for fact in facts if fact)
        self.facts.setText(text)
        self.facts.setVisible(bool(text))

    def show_notes(self, notes: Sequence[str]) -> None:
        """Shows sentences that stop nothing; a long list is cut, with all of it in the tooltip."""
        self._full_notes = tuple(notes)
        more = len(notes) - _MOST_NOTES
        lines = [*notes[:_MOST_NOTES], *([f"And {more} more."] if more > 0 else ())]
        self.notes.setText("\n".join(lines))
        self.notes.setToolTip("\n".join(notes))
        self.notes.setVisible(bool(notes))

    @property
    def noted(self) -> tuple[str, ...]:
        """The notes that are in sight."""
        return self._full_notes

    def show_waiting(self, text: str) -> None:
        """Says why Start has to wait, where no setting is wrong; empty when it does not."""
        self.waiting.setText(text)
        self.waiting.setVisible(bool(text) and self.fix.isHidden())

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copy.setIcon(icon("state-finished", "success"))
        self._back.start()


class FixButton(QPushButton):
    """How many settings are wrong, in the error colour of whatever theme is on."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, flat=True)
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        colour = tone(QGuiApplication.palette(), "error")
        if self.palette().color(QPalette.ColorRole.ButtonText) != colour:  # setting it comes back as a change
            palette = QPalette()
            palette.setColor(QPalette.ColorRole.ButtonText, colour)
            self.setPalette(palette)


class Line(QFrame):
    """A thin rule between parts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), rule(self.palette()))
