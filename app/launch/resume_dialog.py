"""Resume dialog: choose a run, read what resuming will do, then resume."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QTextCursor, QTextOption
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog, QFrame, QPlainTextEdit, QPushButton, QWidget

from app.launch.resume_choices import TrainingPlace
from app.launch.resume_form import ResumeForm
from app.widgets.build import bold_label, lay_column, lay_row, named, page_title
from app.widgets.buttons import PrimaryButton
from app.widgets.card import Card
from app.widgets.dialog import Dialog, Role, TallBody, room_for, set_first_size
from app.widgets.notice_bar import Step
from core.errors import ChunkSizeError, DatasetError, RankdeckError
from core.resume.plan import ResumePlan
from core.run_folder.store import RunEntry

if TYPE_CHECKING:
    from core.machines.moving import MovePlan

PLAN_AFTER_MS: Final = 250
LOOKING: Final = "Reading the run's checkpoints…"
MARGIN: Final = 16
GAP: Final = 12
CHOOSE: Final = "Choose a run, or open a chunk_tracker_state.json to see what resuming will do."
CONFIRM: Final = "Read what this run names first, then confirm that you trust it."


class PlanText(QPlainTextEdit):
    """Read-only text without a ground of its own; a name longer than a line wraps too."""

    def __init__(self) -> None:
        super().__init__(CHOOSE)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()  # it takes what room the dialog leaves

    @property
    def missing_height(self) -> int:
        """The height that is missing to show all lines; the document counts in lines."""
        return round(self.document().size().height()) * self.fontMetrics().lineSpacing() + 4 - self.viewport().height()


class ResumeDialog(Dialog):
    """Asks for a plan after each change, and shows it before anything happens.

    Signals:
        plan_requested: ``(text, changes, machine)`` as `core.resume.planner.plan_resume` takes them; no machine: this
            computer.
        resume_requested: The `ResumePlan` or `MovePlan` in sight.
    """

    plan_requested = Signal(str, object, str)
    resume_requested = Signal(object)

    def __init__(
        self,
        entries: Sequence[RunEntry],
        mode: Mapping[str, str],
        places: Sequence[TrainingPlace] = (TrainingPlace(),),
        machines: Mapping[Path, str] | None = None,
        names: Mapping[Path, str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Resume a run", parent)
        self._plan: ResumePlan | MovePlan | None = None
        self.form = ResumeForm(entries, mode, places, machines or {}, names or {})
        self.form.edited.connect(self._on_edited)
        self.open_file = QPushButton("&Open state file…")
        self.open_file.setToolTip("A chunk_tracker_state.json of Rankdeck or of AI-OS")
        self.open_file.clicked.connect(self._on_open_clicked)
        self.message = named(PlanText(), "What happens")
        self.add_standard(QDialogButtonBox.StandardButton.Cancel)
        self.go = PrimaryButton("&Resume")
        self.go.clicked.connect(lambda: self.resume_requested.emit(self._plan))
        self.buttons.addButton(self.go, Role.AcceptRole)
        self._later = QTimer(self, singleShot=True, interval=PLAN_AFTER_MS)
        self._later.timeout.connect(self._ask)
        self._lay_out()
        self._set_plan(None)

    def _lay_out(self) -> None:
        card = Card()
        parts = (bold_label("What happens"), self.message)
        lay_column(card, *parts, spacing=8, margins=(12, 12, 12, 12), grow=self.message)
        card.setMinimumHeight(96)
        head = lay_row(None, page_title("Resume"), None, self.open_file)
        inner = QWidget()
        lay_column(inner, self.form, self.notice, card, spacing=GAP, grow=card)
        self.body = TallBody(inner, self._room_for_body)
        column = (head, self.body, self.form.trust, self.buttons)
        lay_column(self, *column, spacing=GAP, margins=(MARGIN, MARGIN, MARGIN, MARGIN), grow=self.body)
        cancel = self.buttons.button(QDialogButtonBox.StandardButton.Cancel)
        # From the run downwards to the button; the file of another place comes last.
        order = (*self.form.fields, self.message, self.form.trust, self.go, cancel, self.open_file)
        for before, after in itertools.pairwise(order):
            self.setTabOrder(before, after)
        set_first_size(self, 560, 500)

    def _room_for_body(self) -> int:
        around = [part.sizeHint().height() + GAP for part in (self.open_file, self.buttons)]
        # What must be confirmed is never scrolled out of sight.
        if not self.form.trust.isHidden():
            around.append(self.form.trust.sizeHint().height() + GAP)
        return room_for(self).height() - sum(around) - 2 * MARGIN

    # --- what is asked -----------------------------------------------------------------------------------

    def choose(self, text: str, mode: Mapping[str, str] | None = None, more: Mapping[str, Any] | None = None) -> None:
        """Choose as `ResumeForm.choose`, and asks for the plan at once."""
        self.form.choose(text, mode, more)
        self._later.stop()
        self._ask()

    def _ask(self) -> None:
        text, changes = self.form.asked()
        self._set_plan(None)
        self.notice.clear()
        self.message.setPlainText(LOOKING if text else CHOOSE)
        if text:
            self.plan_requested.emit(text, changes, self.form.machine)

    def _on_edited(self) -> None:
        self._set_plan(None)
        self._later.start()

    def _on_open_clicked(self) -> None:
        kinds = "State files (chunk_tracker_state.json *.json);;All files (*)"
        path, _ = QFileDialog.getOpenFileName(self, "Open a state file", filter=kinds)
        if path:
            self.choose(str(Path(path)))

    def _choose_data(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Choose the dataset that the run was started with")
        if path:
            self.form.data.setText(str(Path(path)))  # Qt gives forward slashes on Windows too
            self._ask()

    # --- what is answered --------------------------------------------------------------------------------

    def show_plan(self, plan: ResumePlan | MovePlan) -> None:
        self.notice.clear()
        self.form.show_plan(plan)
        shown = plan.summary()
        self.message.setPlainText("\n".join(shown.lines))
        self._set_plan(plan)
        if not shown.code_accepted:
            self.form.trust.show()
            self.go.setEnabled(False)
            self.go.setToolTip(CONFIRM)
        self._make_room(shows_end=not shown.code_accepted)

    def _make_room(self, *, shows_end: bool) -> None:
        """Grow with the plan as far as the screen has room; its end, with the question of trust, stays in sight."""
        if (layout := self.layout()) is not None:
            layout.activate()
        if (missing := self.message.missing_height) > 0:
            self.resize(self.width(), min(room_for(self).height(), self.height() + missing))
        self.message.moveCursor(QTextCursor.MoveOperation.End if shows_end else QTextCursor.MoveOperation.Start)

    def show_error(self, error: RankdeckError) -> None:
        about_data = isinstance(error, DatasetError) or "dataset" in f"{error.title} {error.cause}".lower()
        if about_data:
            self.form.show_field(self.form.data, True)
        if isinstance(error, ChunkSizeError):
            self.form.show_field(self.form.chunk_size, True)
        self.notice.show_error(error, Step("Choose &dataset…", self._choose_data) if about_data else None)
        self.message.setPlainText("Nothing was changed.")
        self._set_plan(None)

    def show_progress(self, text: str) -> None:
        """Show the progress of sending or fetching, once the run is being resumed."""
        if self._plan is None:
            self.message.setPlainText(text)

    def show_busy(self) -> None:
        self._set_plan(None)
        self.go.setToolTip("The run is being resumed.")
        self.message.setPlainText("Starting the run…")

    def _set_plan(self, plan: ResumePlan | MovePlan | None) -> None:
        self._plan = plan
        self.go.setEnabled(plan is not None)
        self.go.setToolTip(
            "Resume the run as described" if plan is not None else "Choose a run first to see what resuming will do."
        )
        if plan is not None:
            self.go.setDefault(True)
