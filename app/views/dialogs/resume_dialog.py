"""Resume dialog: choose a run, read what resuming will do, then resume."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from app.state.resume_choices import (
    LR_CHOICES,
    UNCHANGED,
    TrainingPlace,
    checkpoint_choices,
    device_choices,
    finished_at,
    machine_choices,
    mode_choices,
    nodes_before,
    run_choices,
    unchanged_devices,
    unchanged_mode,
    unchanged_steps,
)
from app.views.widgets.build import (
    bold_label,
    dialog_buttons,
    label_grid,
    lay_column,
    lay_row,
    muted_label,
    named,
    narrow,
    page_title,
)
from app.views.widgets.buttons import primary_button
from app.views.widgets.card import Card
from app.views.widgets.first_size import room_for, set_first_size
from app.views.widgets.notice_bar import NoticeBar, Step
from app.views.widgets.steady import ComboBox
from app.views.widgets.tall_body import TallBody
from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.config.device_names import count_devices
from core.config.mode import Mode
from core.errors import ChunkSizeError, DatasetError, RankdeckError
from core.formatting import count
from core.resume.plan import ResumePlan
from core.run_folder.store import RunEntry

if TYPE_CHECKING:
    from core.machines.moving import MovePlan

PLAN_AFTER_MS: Final = 250
LOOKING: Final = "Reading the run's checkpoints…"
LABELS_PX: Final = 104
MARGIN: Final = 16
GAP: Final = 12
ROWS: Final = (
    ("R&un", ""),
    ("Fr&om", "Resume from an older checkpoint. Newer ones are set aside, not removed."),
    ("Train &to step", "Total number of optimizer steps"),
    ("&Learning rate", "How the learning rate continues when the run gets more or fewer steps"),
    ("&Where", "A run can be resumed on any machine. Its checkpoint, and there its code and data, are sent first."),
    ("&Mode", "A run can be resumed in any mode, whichever mode it was trained in."),
    ("Mach&ines", "Whether other machines take part again; their interface is chosen in New run"),
    ("D&evices", "A run can be resumed on any combination of devices. Select others in New run to have them here."),
    ("&Dataset", "Where the dataset is now, as it has moved or the state file doesn't name its path"),
    ("C&hunk size", "The value that the state file was written with, in samples"),
)
"""Labels and tooltips of the fields."""
OTHERS: Final = "Other machines take part. Devices and batch below are those of this computer alone."
CHOOSE: Final = "Choose a run, or open a chunk_tracker_state.json to see what resuming will do."


class PlanText(QPlainTextEdit):
    """Read-only text on the ground it stands on; a name longer than a line wraps too."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)

    def sizeHint(self) -> QSize:
        """As small as it can be: it takes what room the dialog leaves."""
        return self.minimumSizeHint()

    def text(self) -> str:
        """What it says."""
        return self.toPlainText()


class ResumeDialog(QDialog):
    """Asks for a plan whenever something is changed, and shows it before anything happens.

    Args:
        entries: The runs there are.
        mode: Mode and settings that are chosen in New run, as changes of a run (`app.state.draft.mode_changes`).
        places: Where it can be resumed; this computer comes first.
        machines: The machine of each run that is on another one, by folder.
        names: What the list calls the runs, by folder.
        folder: Where *Open state file…* begins; empty: the current folder.
        nodes: With how many machines New run would train; empty: one alone.

    Signals:
        folder_chosen: The folder of the state file that was opened.
        plan_requested: ``(text, changes, machine)``: as `core.resume.planner.plan_resume` takes them, and where to
            train; empty: on this computer.
        resume_requested: The `ResumePlan` or `MovePlan` that is shown.
    """

    folder_chosen = Signal(str)
    plan_requested = Signal(str, object, str)
    resume_requested = Signal(object)

    def __init__(
        self,
        entries: Sequence[RunEntry],
        mode: Mapping[str, str],
        places: Sequence[TrainingPlace] = (TrainingPlace(),),
        machines: Mapping[Path, str] | None = None,
        folder: str = "",
        names: Mapping[Path, str] | None = None,
        parent: QWidget | None = None,
        *,
        nodes: str = "",
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Resume a run")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._plan: ResumePlan | MovePlan | None = None
        self._places = {place.machine: place for place in places}
        self._machines = {str(path): machine for path, machine in (machines or {}).items()}
        self._folder = folder
        self._nodes = nodes
        self._finished = {str(entry.path): finished_at(entry.state) for entry in entries}
        self._machines_then = {str(entry.path): nodes_before(entry.state) for entry in entries}
        self._suggested = ""
        self.notice = NoticeBar()
        self.run = named(ComboBox(), "Run, or path of a state file")
        self.run.setEditable(True)
        self.run.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
        narrow(self.run, 36)
        line = self.run.lineEdit()
        if line is not None:
            line.setPlaceholderText("a run, its folder, or a state file")
        self.open_file = QPushButton("&Open state file…")
        self.open_file.setToolTip("A chunk_tracker_state.json of Rankdeck or of AI-OS")
        self.devices, self.mode, self.checkpoint = ComboBox(), ComboBox(), ComboBox()
        self.where, self.machines, self.schedule = ComboBox(), ComboBox(), ComboBox()
        self.trust = QCheckBox("&I trust this run")
        self.trust.setToolTip(
            "What it names runs with your permissions: it can read, change and send any file that you can."
        )
        self.steps = QLineEdit(placeholderText=UNCHANGED)
        self.steps_hint = muted_label()
        self.steps_hint.hide()
        self.data = QLineEdit(placeholderText=UNCHANGED)
        self.chunk_size = QLineEdit(placeholderText="4000")
        self.message = named(PlanText(CHOOSE), "What happens")
        self.buttons = dialog_buttons(QDialogButtonBox.StandardButton.Cancel)
        self.go = primary_button("&Resume")
        self.buttons.addButton(self.go, QDialogButtonBox.ButtonRole.AcceptRole)
        self._later = QTimer(self, singleShot=True, interval=PLAN_AFTER_MS)
        self._later.timeout.connect(self._ask)
        for text, folder in run_choices(entries, names or {}):
            self.run.addItem(text, folder)
        self.run.setCurrentIndex(-1)
        for place in places:
            self.where.addItem(place.title, place.machine)
        self._offer_devices()
        for text, choice in LR_CHOICES:
            self.schedule.addItem(text, choice)
        for text, changes in mode_choices(mode):
            self.mode.addItem(text, changes)
        self._lay_out()
        self._connect()
        self._set_plan(None)

    def _lay_out(self) -> None:
        title = page_title("Resume")
        grid = label_grid(None, LABELS_PX, line_spacing=8)
        self._labels: dict[QWidget, QLabel] = {}
        fields = (
            *(self.run, self.checkpoint, self.steps, self.schedule, self.where, self.mode, self.machines, self.devices),
            *(self.data, self.chunk_size),
        )
        for row, ((text, tip), field) in enumerate(zip(ROWS, fields, strict=True)):
            label = self._labels[field] = QLabel(text)
            label.setBuddy(field)
            field.setToolTip(tip)
            grid.addWidget(label, 2 * row, 0)
            grid.addWidget(field, 2 * row, 1)
            if field is self.steps:
                grid.addWidget(self.steps_hint, 2 * row + 1, 1)
        for box in (self.checkpoint, self.schedule, self.devices, self.mode, self.machines, self.where):
            narrow(box, 36)
        for part in (self._labels[self.where], self.where):
            part.setVisible(len(self._places) > 1)
        for field in (self.data, self.chunk_size):
            self._show_field(field, False)
        self._offer_checkpoints(())
        self._offer_machines(None)
        card = Card()
        lay_column(
            card, bold_label("What happens"), self.message, spacing=8, margins=(12, 12, 12, 12), grow=self.message
        )
        card.setMinimumHeight(96)
        head = lay_row(None, title, None, self.open_file)
        inner = QWidget()
        lay_column(inner, grid, self.notice, card, spacing=GAP, grow=card)
        self.body = TallBody(inner, self._room_for_body)
        margins = (MARGIN, MARGIN, MARGIN, MARGIN)
        lay_column(self, head, self.body, self.trust, self.buttons, spacing=GAP, margins=margins, grow=self.body)
        self.trust.hide()
        self._order_tabs(fields)
        set_first_size(self, 560, 500)

    def _room_for_body(self) -> int:
        around = [part.sizeHint().height() + GAP for part in (self.open_file, self.buttons)]
        if not self.trust.isHidden():  # what must be confirmed is never scrolled out of sight
            around.append(self.trust.sizeHint().height() + GAP)
        return room_for(self).height() - sum(around) - 2 * MARGIN

    def _order_tabs(self, fields: Sequence[QWidget]) -> None:
        """From the run downwards to the button; the file of another place comes last."""
        cancel = self.buttons.button(QDialogButtonBox.StandardButton.Cancel)
        order = (*fields, self.message, self.trust, self.go, cancel, self.open_file)
        for before, after in itertools.pairwise(order):
            self.setTabOrder(before, after)

    def _connect(self) -> None:
        self.run.activated.connect(self._on_edited)
        self.run.activated.connect(self._show_beginning)
        self.run.editTextChanged.connect(self._on_edited)
        self.run.editTextChanged.connect(self._on_run_changed)
        self.where.activated.connect(self._offer_devices)
        for box in (self.checkpoint, self.schedule, self.devices, self.mode, self.machines, self.where):
            box.activated.connect(self._on_edited)
        for field in (self.steps, self.data, self.chunk_size):
            field.textEdited.connect(self._on_edited)
        self.trust.toggled.connect(self._on_edited)
        self.open_file.clicked.connect(self._on_open_clicked)
        self.buttons.rejected.connect(self.reject)
        self.go.clicked.connect(self._on_go_clicked)

    # --- what is asked -----------------------------------------------------------------------------------

    def choose(self, text: str, mode: Mapping[str, str] | None = None) -> None:
        """Chooses a run by its folder, or names a state file; `mode` is one of those that are offered."""
        if mode is not None:
            self.mode.setCurrentIndex(max(0, self.mode.findData(dict(mode))))
        row = self.run.findData(text)
        self.run.setCurrentIndex(row)
        if row < 0:
            self.run.setEditText(text)
        self._show_beginning()
        if self._suggested:
            self.steps.setFocus()
            self.steps.selectAll()
        self._later.stop()
        self._ask()

    def _show_beginning(self, *_: object) -> None:
        """A run's name begins with what tells it apart; the line shows the end of what was filled in."""
        line = self.run.lineEdit()
        if line is not None:
            line.setCursorPosition(0)

    def asked(self) -> tuple[str, dict[str, Any]]:
        """What to resume, and what is to be different."""
        text = self._named()
        changes: dict[str, Any] = {}
        lines = {"steps": self.steps, "dataset_file": self.data, "dataset_chunk_size": self.chunk_size}
        for name, line in lines.items():
            if line.text().strip():
                changes[name] = line.text().strip()
        if self.schedule.currentData() is not None:
            changes["lr_schedule"] = self.schedule.currentData()
        if self.checkpoint.currentData() is not None:
            changes["checkpoint"] = str(self.checkpoint.currentData())
        devices, mode = self.devices.currentData(), self.mode.currentData()
        if devices is not None:
            changes["devices"] = ",".join(devices)
        if mode is not None:
            alone = devices is not None and count_devices(devices) == 1
            changes |= {"mode": Mode.SINGLE} if alone else mode
        if self.machines.currentData():
            changes["nodes"] = self.machines.currentData()
            changes.setdefault("devices", "auto")  # those of before may be another machine's
        if self.trust.isChecked():
            changes["accept_code"] = True
        return text, changes

    @property
    def machine(self) -> str:
        """The machine that is chosen; empty: this computer."""
        return str(self.where.currentData() or "")

    def set_place(self, place: TrainingPlace) -> None:
        """Takes over what is known by now of a machine's devices; what is chosen stays."""
        if place.machine in self._places:
            self._places[place.machine] = place
            if place.machine == self.machine:
                self._offer_devices()

    def _offer_devices(self, *_: object) -> None:
        """Fills the choice with the devices of the place that is chosen."""
        chosen, unchanged = self.devices.currentData(), self.devices.itemText(0)
        self.devices.clear()
        for text, devices in device_choices(self._places.get(self.machine, TrainingPlace())):
            self.devices.addItem(text, devices)
        if unchanged:
            self.devices.setItemText(0, unchanged)
        self.devices.setCurrentIndex(max(0, self.devices.findData(chosen)) if chosen is not None else 0)

    def _stay_there(self) -> None:
        """A run stays on its machine unless another place is chosen."""
        self.where.setCurrentIndex(max(0, self.where.findData(self._machines.get(self._named(), ""))))
        self._offer_devices()

    def _named(self) -> str:
        """The folder of the run that is chosen, or what is typed."""
        row, typed = self.run.currentIndex(), self.run.currentText()
        return str(self.run.itemData(row)) if row >= 0 and self.run.itemText(row) == typed else typed.strip()

    def _ask(self) -> None:
        text, changes = self.asked()
        self._set_plan(None)
        self.notice.clear()
        if not text:
            self._say(CHOOSE)
            return
        self._say(LOOKING)
        self.plan_requested.emit(text, changes, self.machine)

    # --- what is answered --------------------------------------------------------------------------------

    def show_plan(self, plan: ResumePlan | MovePlan) -> None:
        """Shows what will happen; the Resume button does it."""
        shown = plan.summary()
        state_file = plan.state_file if isinstance(plan, ResumePlan) else None
        self.notice.clear()
        if state_file is not None and state_file.chunk_size is None:
            self._show_field(self.chunk_size, True)
        if state_file is not None:
            self._show_field(self.data, True)
        self._offer_checkpoints(shown.checkpoints, shown.best)
        asked_machines = self.machines.currentData()
        self._offer_machines(plan.nodes_then if isinstance(plan, ResumePlan) else None, isinstance(plan, ResumePlan))
        self._show_unchanged(unchanged_steps(shown), unchanged_mode(shown), unchanged_devices(shown))
        others = [OTHERS] if isinstance(plan, ResumePlan) and plan.config.nodes is not None else []
        self._say("\n".join([*others, *shown.lines]))
        self._set_plan(plan)
        if self.machines.currentData() != asked_machines:  # the least number was not known before
            self._on_edited()
            return
        if not shown.code_accepted:
            self.trust.show()
            self.go.setEnabled(False)
            self.go.setToolTip("Read what this run names first, then confirm that you trust it.")

    def show_error(self, error: RankdeckError) -> None:
        """Says why it cannot be resumed so."""
        about_data = isinstance(error, DatasetError) or "dataset" in f"{error.title} {error.cause}".lower()
        step = Step("Choose &dataset…", self._choose_data) if about_data else None
        if about_data:
            self._show_field(self.data, True)
        self.notice.show_error(error, step)
        if isinstance(error, ChunkSizeError):
            self._show_field(self.chunk_size, True)
        self._say("Nothing was changed.")
        self._set_plan(None)

    def show_progress(self, text: str) -> None:
        """What is sent to another machine or fetched from it, once the run is being resumed."""
        if self._plan is None:
            self._say(text)

    def show_busy(self) -> None:
        """The run is being resumed; it was asked once."""
        self._set_plan(None)
        self.go.setToolTip("The run is being resumed.")
        self._say("Starting the run…")

    def _offer_checkpoints(self, entries: Sequence[CheckpointEntry], best: int | None = None) -> None:
        """Fills the choice, newest first, and keeps what is chosen."""
        chosen = self.checkpoint.currentData()
        self.checkpoint.clear()
        for text, number in checkpoint_choices(entries, best):
            self.checkpoint.addItem(text, number)
        self.checkpoint.setCurrentIndex(max(0, self.checkpoint.findData(chosen) if chosen is not None else 0))
        self.checkpoint.setEnabled(self.checkpoint.count() > 1)

    def _offer_machines(self, then: str | None, can_be_several: bool = True) -> None:
        """Fills the choice, and keeps what is chosen; out of sight where there is none, as for a run that moves."""
        asked = self._nodes if can_be_several else ""
        chosen, offered = self.machines.currentData(), tuple(machine_choices(then, asked))
        self.machines.clear()
        for text, nodes in offered:
            self.machines.addItem(text, nodes)
        row = self.machines.findData(chosen) if chosen else 0
        self.machines.setCurrentIndex(row if row >= 0 else min(1, len(offered) - 1))
        for part in (self._labels[self.machines], self.machines):
            part.setVisible(len(offered) > 1)

    def _show_unchanged(self, steps: str, mode: str, devices: str) -> None:
        """Says what stays as it is where nothing is chosen."""
        if self._plan is None and not self.steps.text():
            self.steps.setPlaceholderText(steps)
        self.mode.setItemText(0, mode)
        self.devices.setItemText(0, devices)

    def _show_field(self, field: QLineEdit, shown: bool) -> None:
        """Shows a field that only some state files need, or runs whose data has moved."""
        if not shown:
            field.clear()
        self._labels[field].setVisible(shown)
        field.setVisible(shown)

    def _on_run_changed(self) -> None:
        """What was learnt or confirmed of one run says nothing of another."""
        self._show_field(self.chunk_size, False)
        self.schedule.setCurrentIndex(0)
        self._offer_checkpoints(())
        self._offer_machines(self._machines_then.get(self._named()))
        self.steps.setPlaceholderText(UNCHANGED)
        self._show_unchanged(UNCHANGED, UNCHANGED, UNCHANGED)
        self._forget_trust()
        self._suggest_steps()
        self._stay_there()

    def _suggest_steps(self) -> None:
        """A finished run trains further only to a larger step: twice as many stand there to begin with."""
        finished = self._finished.get(self._named())
        if self.steps.text() == self._suggested:
            self._suggested = "" if finished is None else str(2 * finished)
            self.steps.setText(self._suggested)
        self.steps_hint.setVisible(finished is not None)
        if finished is not None:
            at = count(finished)
            self.steps_hint.setText(f"The run finished at step {at}. To train further, enter a larger number.")

    def _forget_trust(self) -> None:
        """What was confirmed of one run says nothing of another."""
        with QSignalBlocker(self.trust):
            self.trust.setChecked(False)
        self.trust.hide()

    def _say(self, text: str) -> None:
        self.message.setPlainText(text)

    def _set_plan(self, plan: ResumePlan | MovePlan | None) -> None:
        self._plan = plan
        self.go.setEnabled(plan is not None)
        self.go.setToolTip(
            "Resume the run as described" if plan is not None else "Choose a run first to see what resuming will do."
        )
        if plan is not None:
            self.go.setDefault(True)

    def _on_edited(self, *_: object) -> None:
        self._set_plan(None)
        self._later.start()

    def _on_open_clicked(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, "Open a state file", self._folder, "State files (chunk_tracker_state.json *.json);;All files (*)"
        )
        if path:
            self._folder = str(Path(path).parent)
            self.folder_chosen.emit(self._folder)
            self.choose(str(Path(path)))

    def _choose_data(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Choose the dataset that the run was started with")
        if path:
            self.data.setText(str(Path(path)))  # Qt gives forward slashes on Windows too
            self._ask()

    def _on_go_clicked(self) -> None:
        if self._plan is not None:
            self.resume_requested.emit(self._plan)
