"""Checks as rows: sign and name, result, meaning, remedy, and a button where the window can carry it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.style.icons import icon
from app.widgets.build import bold_label, lay_column, lay_row, muted_label
from app.widgets.buttons import OutlinedButton, PrimaryButton
from app.widgets.card import Card
from core.doctor.finding import Finding, Fix, Level, Problem

SIGN: Final = 16
NAME_WIDTH: Final = 184
WORD_WIDTH: Final = 72
# What the button of each fix says.
FIXES: Final[dict[Fix, str]] = {
    "install_cuda": "Install GPU build…",
    "install_deepspeed": "Install DeepSpeed…",
    "copy_command": "Copy command",
    "create_runs_folder": "Create folder",
    "choose_runs_folder": "Choose folder…",
    "end_leftovers": "End processes",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A level's word (for screen readers, and where there is no colour), and its icon's name and tone."""

    word: str
    sign: str
    tone: str


LEVELS: Final[dict[Level, Shown]] = {
    "ok": Shown("works", "state-finished", "success"),
    "warn": Shown("limited", "warning", "warning"),
    "fail": Shown("failed", "error", "error"),
    "not_tried": Shown("not tried", "state-idle", "muted"),
}


class CheckRow(QWidget):
    """A finding; `in_table`: a line among others of its kind, with its meaning as a tooltip."""

    fix_requested = Signal(object)

    def __init__(self, finding: Finding, *, in_table: bool = False) -> None:
        super().__init__()
        self.finding = finding
        self._in_table = in_table
        self._sign = QLabel()
        self._sign.setFixedSize(SIGN, SIGN)
        self._name, self.text, self.next_step = QLabel(), QLabel(), QLabel()
        self._meaning, self.word = muted_label(), muted_label(wraps=False)
        self.word.setFixedWidth(WORD_WIDTH)
        self.word.setVisible(in_table)
        for label in (self._name, self.text, self._meaning, self.next_step):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        for label in (self._name, self.word, self.text, self.next_step):  # all, so that they have one base line
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._name.setFixedWidth(NAME_WIDTH)
        self.fix = OutlinedButton()
        self.fix.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.fix.clicked.connect(lambda: self.fix_requested.emit(self.finding))
        lines = lay_column(None, self.text, self.next_step, self._meaning, spacing=2)
        edge = 2 if in_table else 6
        parts = (self._sign, self._name, self.word, lines, self.fix)
        row = lay_row(self, *parts, spacing=12, margins=(0, edge, 0, edge), grow=lines)
        for part in (self._sign, self._name, self.word, self.fix):
            row.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self.show_finding(finding)

    def show_finding(self, finding: Finding, *, shares_cause: bool = False) -> None:
        """Show a newer result of the same check; `shares_cause`: its remedy stands on the card of a shared cause."""
        self.finding = finding
        self.word.setText(LEVELS[finding.level].word.capitalize())
        self._name.setText(finding.name)
        text = finding.text.removeprefix("works ") if self._in_table else finding.text  # the word stands beside it
        self.text.setText(f"{text[:1].upper()}{text[1:]}")
        self.next_step.setText(f"To do: {finding.next_step}")
        self.next_step.setVisible(bool(finding.next_step) and not shares_cause and not self._in_table)
        self._meaning.setText(finding.topic.meaning)
        self._meaning.setVisible(not self._in_table)
        self.setToolTip("\n".join(filter(None, (finding.topic.meaning, finding.next_step))) if self._in_table else "")
        label = FIXES.get(finding.fix, "")
        self.fix.setText(label)
        self.fix.setVisible(bool(label) and not shares_cause)
        self.fix.setAccessibleName(f"{label} ({finding.name})")
        self.fix.setToolTip(finding.command or finding.next_step)
        self.setAccessibleName(spoken_text(finding))
        self._show_sign()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._show_sign()
        super().changeEvent(event)

    def _show_sign(self) -> None:
        shown = LEVELS[self.finding.level]
        self._sign.setPixmap(icon(shown.sign, shown.tone).pixmap(SIGN, SIGN))
        self._sign.setToolTip(shown.word)


class ProblemCard(Card):
    """A cause that several findings share, the modes and devices it affects, and the one remedy."""

    fix_requested = Signal(object)

    def __init__(self, problem: Problem) -> None:
        super().__init__(edge="error" if problem.level == "fail" else "warning")
        first, level = problem.findings[0], LEVELS[problem.level]
        self.title, self.text = bold_label(problem.title), QLabel(f"{first.text[:1].upper()}{first.text[1:]}")
        self.next_step = QLabel(f"To do: {first.next_step}")
        self.affects = muted_label(f"Affects {problem.affects}.")
        for label in (self.title, self.text, self.next_step, self.affects):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.next_step.setVisible(bool(first.next_step) and not FIXES.get(first.fix))  # the button does it
        sign = QLabel()
        sign.setPixmap(icon(level.sign, level.tone).pixmap(SIGN, SIGN))
        self.fix = PrimaryButton(FIXES.get(first.fix, ""))
        self.fix.setVisible(bool(self.fix.text()))
        self.fix.setToolTip(first.command or first.next_step)
        self.fix.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.fix.clicked.connect(lambda: self.fix_requested.emit(first))
        lines = lay_column(None, self.title, self.text, self.next_step, self.affects, spacing=4)
        row = lay_row(self, sign, lines, self.fix, spacing=12, margins=(16, 10, 12, 10), grow=lines)
        row.setAlignment(sign, Qt.AlignmentFlag.AlignTop)
        self.setAccessibleName(f"{problem.title}. {first.text}. {self.affects.text()} {first.next_step}")


def spoken_text(finding: Finding) -> str:
    """The text of a row for screen readers."""
    parts = (f"{finding.name}: {LEVELS[finding.level].word}. {finding.text}", finding.topic.meaning, finding.next_step)
    return " ".join(part if part.endswith((".", "?", "…")) else f"{part}." for part in parts if part)
