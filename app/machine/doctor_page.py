"""Page that checks this machine: results with their next steps, self-tests and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from app.widgets.build import bold_label, icon_button, lay_column, lay_row, muted_label, named, page_title, scrolled
from app.widgets.buttons import OutlinedButton, PrimaryButton
from app.widgets.card import Card
from app.widgets.elided_label import ElidedLabel
from app.widgets.page import Page
from app.widgets.tab_order import chain_tabs
from app.widgets.tone_label import SignLabel
from core.doctor.finding import (
    DEVICES,
    FOLDERS,
    MACHINE,
    MODES,
    SELF_TESTS,
    SOFTWARE,
    Finding,
    Fix,
    Level,
    Problem,
    find_problems,
    problems_text,
)

# Room for the scroll bar and its gap, so that all cards have the same right edge.
BESIDE_BAR: Final = 20
# Lines longer than this are hard to read.
MOST_WIDTH: Final = 1080
# In their order on the page: verdicts first, and what a person can start beside them.
GROUPS: Final = (MODES, SELF_TESTS, DEVICES, SOFTWARE, MACHINE, FOLDERS)
SELF_TESTS_IDLE: Final = (
    "Self-tests try what the checks below only look at: each device computes in fp32, bf16 and fp16, and two processes "
    "exchange tensors over gloo and NCCL. They take about half a minute and use the devices; a run that trains "
    "meanwhile gets slower."
)
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


class DoctorPage(Page):
    """A card for each cause of several findings, then one for each group of checks. It checks nothing itself.

    Attributes:
        rows: The findings' rows, by topic.
        problems: The cards of shared causes.

    Signals:
        fix_requested: The finding whose button was pressed.
    """

    check_requested = Signal()
    self_tests_requested = Signal()
    cancel_requested = Signal()
    diagnostics_requested = Signal()
    fix_requested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Check this machine")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.findings: list[Finding] = []
        self.rows: dict[str, CheckRow] = {}
        self.problems: list[ProblemCard] = []
        self._shared: tuple[Problem, ...] = ()
        self._is_checking = self._is_testing = False
        self._make_head()
        self._make_cards()
        self._lay_out()
        self.show_checking()

    # --- from outside ------------------------------------------------------------------------------------

    def show_checking(self) -> None:
        self._is_checking = True
        self.about.set_full_text("Checking this machine…")
        self._show_buttons()

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Show all results there are by now, in their order; the quick checks are over."""
        self.findings = list(findings)
        self._is_checking = False
        self._show_problems(tuple(problem for problem in find_problems(findings) if problem.is_shared))
        shared = {finding.topic.id for problem in self._shared for finding in problem.findings}
        for finding in findings:
            row = self.rows.get(finding.topic.id) or self._add(finding)
            row.show_finding(finding, shares_cause=finding.topic.id in shared)
        for topic in self.rows.keys() - {finding.topic.id for finding in findings}:
            row = self.rows.pop(topic)
            row.hide()
            row.deleteLater()
        for group, card in self._cards.items():
            own = [finding for finding in findings if finding.topic.group == group]
            levels = {finding.level for finding in own}
            card.set_edge("error" if "fail" in levels else "warning" if "warn" in levels else "")
            card.setVisible(bool(own) or group == SELF_TESTS)
        self._idle.setVisible(not any(finding.topic.group == SELF_TESTS for finding in findings))
        if not self._is_checking:
            self.about.set_full_text(problems_text(findings))
        chain_tabs(self)
        self._show_buttons()

    def show_testing(self, name: str, number: int, count: int) -> None:
        """Show which self-test runs, the `number`th (from 1) of `count`."""
        if not self._is_testing:
            self._is_testing = True
            self._scroll.verticalScrollBar().setValue(max(0, self._cards[SELF_TESTS].y() - 8))
            had_focus = self.run_tests.hasFocus()
            self._show_buttons()
            if had_focus:
                self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)
        self.doing.set_full_text(f"{name} ({number} of {count})" if count else name)
        self.bar.setRange(0, max(1, count) if count else 0)
        self.bar.setValue(number - 1)

    def show_tested(self) -> None:
        had_focus = self.cancel.hasFocus()
        self._is_testing = False
        self._show_buttons()
        if had_focus:
            self.run_tests.setFocus(Qt.FocusReason.OtherFocusReason)

    # --- building ----------------------------------------------------------------------------------------

    def _make_head(self) -> None:
        self.title = page_title("Check this machine")
        self.about = ElidedLabel()
        self.about.setAccessibleName("Summary")
        self.run_tests = PrimaryButton("Run self-&tests")
        self.run_tests.clicked.connect(self.self_tests_requested)
        self.check = OutlinedButton("Check a&gain")
        self.check.clicked.connect(self.check_requested)
        self.diagnostics = OutlinedButton("Save &diagnostics…")
        self.diagnostics.setToolTip("Save a ZIP file for a report of a problem")
        self.diagnostics.clicked.connect(self.diagnostics_requested)
        self.close_button = icon_button("close", "Close the check (Esc)", self.close_requested.emit, "Close")
        self.close_button.setAutoRaise(True)
        self.doing = ElidedLabel()
        self.bar = named(QProgressBar(textVisible=False), "Progress of the self-tests")
        self.bar.setFixedWidth(160)
        self.cancel = OutlinedButton("&Cancel")
        self.cancel.clicked.connect(self._on_cancel_clicked)

    def _make_cards(self) -> None:
        self._cards = {group: Card() for group in GROUPS}
        self._columns: dict[str, QVBoxLayout] = {}
        self._idle = muted_label(SELF_TESTS_IDLE)
        for group, card in self._cards.items():
            first: list[QLabel] = [self._idle] if group == SELF_TESTS else []
            title = bold_label(group)
            self._columns[group] = lay_column(card, title, *first, spacing=2, margins=(16, 10, 12, 8))

    def _lay_out(self) -> None:
        head = Card()
        row = lay_row(None, self.title, None, self.close_button, spacing=8)
        # The progress takes the place of the buttons, so that the cards below stay where they are.
        self._buttons, self._going = QWidget(), QWidget()
        lay_row(self._buttons, self.run_tests, self.check, self.diagnostics, None, spacing=8)
        lay_row(self._going, self.bar, self.doing, self.cancel, spacing=12, margins=(0, 0, 8, 0), grow=self.doing)
        lay_column(head, row, self.about, self._buttons, self._going, spacing=6, margins=(16, 8, 8, 10))
        body = QWidget()
        body.setMaximumWidth(MOST_WIDTH)
        self._body = lay_column(body, *self._cards.values(), None, spacing=8, margins=(0, 0, 8, 8))
        middle = QWidget()
        lay_row(middle, body, spacing=0)
        self._scroll = named(scrolled(middle), "Checks")
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for see_through in (body, middle, self._scroll.viewport()):
            see_through.setAutoFillBackground(False)
        head.setMaximumWidth(MOST_WIDTH - 8)  # as the cards, which have a gap beside them
        over = lay_row(None, head, margins=(0, 0, BESIDE_BAR, 0))
        lay_column(self, over, self._scroll, spacing=8, margins=(8, 8, 0, 0), grow=self._scroll)

    def _add(self, finding: Finding) -> CheckRow:
        row = CheckRow(finding, in_table=finding.topic.group == MODES)
        row.fix_requested.connect(self.fix_requested)
        self.rows[finding.topic.id] = row
        self._columns[finding.topic.group].addWidget(row)
        return row

    def _show_problems(self, shared: tuple[Problem, ...]) -> None:
        if shared == self._shared:
            return
        for old in self.problems:
            old.hide()
            old.deleteLater()
        self._shared, self.problems = shared, [ProblemCard(problem) for problem in shared]
        for place, card in enumerate(self.problems):
            card.fix_requested.connect(self.fix_requested)
            self._body.insertWidget(place, card)

    def _show_buttons(self) -> None:
        is_busy = self._is_checking or self._is_testing
        self.run_tests.setEnabled(not is_busy)
        self.check.setEnabled(not is_busy)
        self.diagnostics.setEnabled(not is_busy and bool(self.findings))
        self._buttons.setVisible(not self._is_testing)
        self._going.setVisible(self._is_testing)
        self.cancel.setEnabled(self._is_testing)

    # --- what the user does ------------------------------------------------------------------------------

    def _on_cancel_clicked(self) -> None:
        self.cancel.setEnabled(False)  # until what runs has ended
        self.doing.set_full_text("Ending…")
        self.cancel_requested.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.setFocus(Qt.FocusReason.OtherFocusReason)


class CheckRow(QWidget):
    """A finding; `in_table`: a line among others of its kind, with its meaning as a tooltip."""

    fix_requested = Signal(object)

    def __init__(self, finding: Finding, *, in_table: bool = False) -> None:
        super().__init__()
        self.finding = finding
        self._in_table = in_table
        self._sign = SignLabel(SIGN)
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
        shown = LEVELS[finding.level]
        self._sign.show_sign(shown.sign, shown.tone)
        self._sign.setToolTip(shown.word)
        self.word.setText(shown.word.capitalize())
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
        sign = SignLabel(SIGN)
        sign.show_sign(level.sign, level.tone)
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
