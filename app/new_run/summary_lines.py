"""Foot of the New run sheet: estimate, batch arithmetic, equivalent command line, and Start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFontDatabase, QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QPushButton, QWidget

from app.draft.draft import CheckedDraft
from app.draft.memory_text import MemoryText
from app.new_run.memory_strip import MemoryStrip
from app.style.fonts import tabular
from app.style.icons import icon
from app.style.tones import rule
from app.widgets.build import icon_button, lay_column, lay_row, muted_label, named
from app.widgets.buttons import Chip, PrimaryActionButton
from app.widgets.elided_label import ElidedLabel
from app.widgets.tone_label import show_in_tone
from core.config.mode import Mode
from core.formatting import count, parameters_text
from core.recipes.parameter_formula import ParameterCount

TUNE_TIP: Final = "Try micro-batches with real steps on the selected devices for about a minute"
COPIED_MS: Final = 1500
_START_WIDTH: Final = 120


class SummaryLines(QFrame):
    """Always current and always as high: the verdict on memory, the batch, the model's size, the command, Start.

    Args:
        start: The action of the big button; None leaves it out.

    Signals:
        fix_requested: The line that counts wrong settings was clicked.
    """

    fix_requested = Signal()

    def __init__(self, start: QAction | None = None) -> None:
        super().__init__()
        self.arithmetic = QLabel()
        self.arithmetic.setFont(tabular(self.arithmetic.font()))
        self.fix = FixButton()
        self.fix.setToolTip("Go to the first of them")
        self.fix.clicked.connect(self.fix_requested)
        self.fix.hide()
        self.facts = ElidedLabel()
        self.facts.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._known: tuple[str, ...] = ("", "")
        self.memory = MemoryStrip()
        self.tune = Chip("&Tune…", TUNE_TIP)
        self.status = ElidedLabel()
        self.status.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.notes = muted_label()
        self.notes.setTextFormat(Qt.TextFormat.PlainText)
        self.notes.hide()
        self._waiting = ""
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
        self.memory.content.insertWidget(0, self.notes)
        lines = lay_row(None, self.arithmetic, self.facts, spacing=8, grow=self.facts)
        state = QWidget()
        lay_row(state, self.fix, self.status, self.tune, self.memory.toggle, spacing=8, grow=self.status)
        parts = (self.fix, self.tune, self.memory.toggle)
        state.setFixedHeight(max(part.sizeHint().height() for part in parts))
        body = lay_column(None, self.memory, lines, state, self.memory.body, row, spacing=4, margins=(16, 10, 12, 12))
        lay_column(self, Line(), body)

    def show_checked(self, checked: CheckedDraft, steps_per_epoch: int | None, ranks: int = 1) -> None:
        """Show a draft's arithmetic and command; while something is wrong, the number of problems.

        `ranks` is the number of ticked devices.
        """
        batch, text, epoch = checked.batch, "", ""
        tip = "Samples per optimizer step = micro-batch × devices × accumulation"
        if batch is not None:
            apart = " per device" if checked.mode == Mode.INDEPENDENT else ""
            factors = f"{count(batch.micro)} × {batch.ranks} × {count(batch.accumulation)}"
            text = f"Global batch {count(batch.global_)} = {factors}{apart}"
            if steps_per_epoch:
                epoch = f"≈ {count(steps_per_epoch)} {'step' if steps_per_epoch == 1 else 'steps'} per epoch"
        elif checked.config is not None:
            text = "1 process" if ranks == 1 else f"{count(ranks)} processes, one per device"
            tip = "The program sets its own batch size"
        wrong = len(checked.problems)
        self.fix.setText(f"✕ Fix {wrong} {'setting' if wrong == 1 else 'settings'} to start")
        self.arithmetic.setText(text)
        self.arithmetic.setToolTip(tip)
        self._show_facts(self._known[0], epoch)
        self.fix.setVisible(bool(wrong))
        self._show_status()
        if self.command.text() != checked.command:
            self.command.setText(checked.command)
            self.command.setCursorPosition(0)
        self.command.setToolTip(checked.command)
        self.copy.setEnabled(bool(checked.command))
        why_not = checked.waiting or "Fix the marked settings to get a command"
        self.copy.setToolTip("Copy the equivalent command line" if checked.command else why_not)

    def show_parameters(self, count: ParameterCount | None) -> None:
        self._show_facts("" if count is None else parameters_text(count.total, count.trained), self._known[1])

    def _show_facts(self, *facts: str) -> None:
        self._known = facts
        self.facts.set_full_text(" · ".join(fact for fact in facts if fact), next(filter(None, facts), ""))

    def show_notes(self, notes: Sequence[str]) -> None:
        """Show sentences that stop nothing: the first one in sight, all of them behind the arrow."""
        self._full_notes = tuple(notes)
        self.notes.setText("\n".join(notes))
        self.notes.setVisible(bool(notes))
        self._show_status()

    def show_memory(self, text: MemoryText) -> None:
        self.memory.show_memory(text)
        self._show_status()

    def _show_status(self) -> None:
        """Show one line: the reason why Start waits, else a note, else the estimated time."""
        notes, strip = self._full_notes, self.memory
        more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
        first = f"{notes[0]}{more}" if notes else ""
        time = " · ".join(label.text() for label in (strip.time, strip.advice) if not label.isHidden())
        wrong = not self.fix.isHidden()
        short = first.partition(", ")[2] if first.startswith("Data: ") else ""
        self.status.set_full_text("" if wrong else self._waiting or first or time, "" if self._waiting else short)
        self.status.setToolTip("\n".join(notes) if notes and not self._waiting else self.status.full_text)

    @property
    def noted(self) -> tuple[str, ...]:
        return self._full_notes

    def show_tunable(self, why_not: str) -> None:
        """Enable *Tune…* where `why_not` is empty; else it is the button's tooltip."""
        self.tune.setEnabled(not why_not)
        self.tune.setToolTip(why_not or TUNE_TIP)
        self.tune.setAccessibleDescription(why_not or TUNE_TIP)

    def show_waiting(self, text: str) -> None:
        """Show why Start has to wait, where no setting is wrong; empty when it does not."""
        self._waiting = text
        self._show_status()

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copy.setIcon(icon("state-finished", "success"))
        self._back.start()


class FixButton(QPushButton):
    """Button with the number of wrong settings, in the error colour of the current theme."""

    def __init__(self) -> None:
        super().__init__(flat=True)
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _colour(self) -> None:
        show_in_tone(self, QPalette.ColorRole.ButtonText, "error")


class Line(QFrame):
    """A thin rule between parts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), rule(self.palette()))
