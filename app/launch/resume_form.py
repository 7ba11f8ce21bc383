"""Form of the Resume dialog: the run, and changes of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QWidget

from app.launch.resume_choices import (
    LR_CHOICES,
    THIS_COMPUTER,
    UNCHANGED,
    TrainingPlace,
    checkpoint_choices,
    device_choices,
    finished_at,
    mode_choices,
    run_choices,
)
from app.widgets.build import label_grid, muted_label, named, narrow
from app.widgets.steady import ComboBox
from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.config.device_names import count_devices
from core.config.mode import Mode
from core.formatting import count
from core.resume.plan import ResumePlan
from core.run_folder.store import RunEntry

if TYPE_CHECKING:
    from core.machines.moving import MovePlan

LABELS_PX: Final = 104
LETTERS: Final = 36


class ResumeForm(QWidget):
    """Choices in a column, which the chosen run's plan fills.

    Args:
        mode: The mode and its settings in New run, as changes of a run (`app.draft.draft.mode_changes`).
        places: Machines to resume on; this computer comes first.
        machines: The machine of each run that is on another one, by folder.

    Attributes:
        more: Changes of the chosen run that have no field here.
    """

    edited = Signal()

    def __init__(
        self,
        entries: Sequence[RunEntry],
        mode: Mapping[str, str],
        places: Sequence[TrainingPlace],
        machines: Mapping[Path, str],
        names: Mapping[Path, str],
    ) -> None:
        super().__init__()
        self._places = {place.machine: place for place in places}
        self._machines = {str(path): machine for path, machine in machines.items()}
        self._finished = {str(entry.path): finished_at(entry.state) for entry in entries}
        self._suggested = ""
        self.more: Mapping[str, Any] = {}
        self.run = named(ComboBox(), "Run, or path of a state file")
        self.run.setEditable(True)
        self.run.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
        self._run_line = self.run.lineEdit() or QLineEdit()
        self._run_line.setPlaceholderText("a run, its folder, or a state file")
        self.checkpoint, self.schedule, self.where = ComboBox(), ComboBox(), ComboBox()
        self.mode, self.devices = ComboBox(), ComboBox()
        self.steps, self.data = QLineEdit(placeholderText=UNCHANGED), QLineEdit(placeholderText=UNCHANGED)
        self.chunk_size = QLineEdit(placeholderText="4000")
        self.steps_hint = muted_label()
        self.steps_hint.hide()
        # The dialog places it where it is never scrolled out of sight.
        self.trust = QCheckBox("&I trust this run")
        self.trust.setToolTip(
            "What it names runs with your permissions: it can read, change and send any file that you can."
        )
        self.trust.hide()
        self._lay_out()
        _fill(self.run, run_choices(entries, names))
        self.run.setCurrentIndex(-1)
        _fill(self.where, ((place.machine or THIS_COMPUTER, place.machine) for place in places))
        _fill(self.schedule, LR_CHOICES)
        _fill(self.mode, mode_choices(mode))
        self._offer_devices()
        self._offer_checkpoints(())
        self._show(self.where, len(places) > 1)
        for field in (self.data, self.chunk_size):
            self.show_field(field, False)
        self._connect()

    def _lay_out(self) -> None:
        fields: dict[ComboBox | QLineEdit, tuple[str, str]] = {
            self.run: ("R&un", ""),
            self.checkpoint: ("Fr&om", "Resume from an older checkpoint. Newer ones are set aside, not removed."),
            self.steps: ("Train &to step", "Total number of optimizer steps"),
            self.schedule: (
                "&Learning rate",
                "How the learning rate continues when the run gets more or fewer steps",
            ),
            self.where: (
                "&Where",
                "A run can be resumed on any machine. Its checkpoint, and there its code and data, are sent first.",
            ),
            self.mode: ("&Mode", "A run can be resumed in any mode, whichever mode it was trained in."),
            self.devices: (
                "D&evices",
                "A run can be resumed on any combination of devices. Select others in New run to have them here.",
            ),
            self.data: (
                "&Dataset",
                "Where the dataset is now, as it has moved or the state file doesn't name its path",
            ),
            self.chunk_size: ("C&hunk size", "The value that the state file was written with, in samples"),
        }
        self.fields = tuple(fields)
        self._labels: dict[QWidget, QLabel] = {field: QLabel(text) for field, (text, _) in fields.items()}
        grid = label_grid(self, LABELS_PX, line_spacing=8)
        for row, (field, (_, tip)) in enumerate(fields.items()):
            self._labels[field].setBuddy(field)
            field.setToolTip(tip)
            grid.addWidget(self._labels[field], 2 * row, 0)
            grid.addWidget(field, 2 * row, 1)
            if isinstance(field, ComboBox):
                narrow(field, LETTERS)
            if field is self.steps:
                grid.addWidget(self.steps_hint, 2 * row + 1, 1)

    def _connect(self) -> None:
        self.run.activated.connect(self.show_beginning)
        self.run.editTextChanged.connect(self.edited)
        self.run.editTextChanged.connect(self._on_run_changed)
        self.where.activated.connect(self._offer_devices)
        for field in self.fields:
            (field.activated if isinstance(field, ComboBox) else field.textEdited).connect(self.edited)
        self.trust.clicked.connect(self.edited)

    # --- what is asked -----------------------------------------------------------------------------------

    def choose(self, text: str, mode: Mapping[str, str] | None = None, more: Mapping[str, Any] | None = None) -> None:
        """Choose a run by its folder, or a state file, with changes as `core.resume.planner.plan_resume` takes them."""
        if mode is not None:
            self.mode.setCurrentIndex(max(0, self.mode.findData(dict(mode))))
        row = self.run.findData(text)
        self.run.setCurrentIndex(row)
        if row < 0:
            self.run.setEditText(text)
        self.more = more or {}
        self.show_beginning()
        if self._suggested:
            self.steps.setFocus()
            self.steps.selectAll()

    def show_beginning(self, *_: object) -> None:
        """Show the beginning of a run's name; Qt shows the end of a text that is filled in."""
        self._run_line.setCursorPosition(0)

    def asked(self) -> tuple[str, dict[str, Any]]:
        changes: dict[str, Any] = dict(self.more)
        lines = {"steps": self.steps, "dataset_file": self.data, "dataset_chunk_size": self.chunk_size}
        changes |= {name: line.text().strip() for name, line in lines.items() if line.text().strip()}
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
        if self.trust.isChecked():
            changes["accept_code"] = True
        return self._named(), changes

    @property
    def machine(self) -> str:
        return str(self.where.currentData() or "")

    def _named(self) -> str:
        """The chosen run's folder, or the typed text."""
        row, typed = self.run.currentIndex(), self.run.currentText()
        return str(self.run.itemData(row)) if row >= 0 and self.run.itemText(row) == typed else typed.strip()

    # --- what is offered ---------------------------------------------------------------------------------

    def set_place(self, place: TrainingPlace) -> None:
        """Take over news of a machine's devices; the choice stays."""
        if place.machine in self._places:
            self._places[place.machine] = place
            if place.machine == self.machine:
                self._offer_devices()

    def show_plan(self, plan: ResumePlan | MovePlan) -> None:
        """Offer the run's own choices."""
        shown, own = plan.summary(), plan if isinstance(plan, ResumePlan) else None
        if own is not None and own.state_file is not None:
            self.show_field(self.data, True)
            if own.state_file.chunk_size is None:
                self.show_field(self.chunk_size, True)
        self._offer_checkpoints(shown.checkpoints, shown.best)

    def show_field(self, field: QLineEdit, shown: bool) -> None:
        """Show a field that only some state files need, or runs with moved data."""
        if not shown:
            field.clear()
        self._show(field, shown)

    def _show(self, field: QWidget, shown: bool) -> None:
        self._labels[field].setVisible(shown)
        field.setVisible(shown)

    def _offer_devices(self, *_: object) -> None:
        _fill(self.devices, device_choices(self._places.get(self.machine, TrainingPlace())))

    def _offer_checkpoints(self, entries: Sequence[CheckpointEntry], best: int | None = None) -> None:
        _fill(self.checkpoint, checkpoint_choices(entries, best))
        self.checkpoint.setEnabled(self.checkpoint.count() > 1)

    def _on_run_changed(self) -> None:
        """Forget answers and consent: they do not hold for another run."""
        name = self._named()
        self.more = {}
        self.show_field(self.chunk_size, False)
        self.schedule.setCurrentIndex(0)
        self._offer_checkpoints(())
        self.trust.setChecked(False)
        self.trust.hide()
        self._suggest_steps(self._finished.get(name))
        # A run stays on its machine unless another place is chosen.
        self.where.setCurrentIndex(max(0, self.where.findData(self._machines.get(name, ""))))
        self._offer_devices()

    def _suggest_steps(self, finished: int | None) -> None:
        """Suggest twice as many steps: a finished run trains further only to a larger step."""
        if self.steps.text() == self._suggested:
            self._suggested = "" if finished is None else str(2 * finished)
            self.steps.setText(self._suggested)
        self.steps_hint.setVisible(finished is not None)
        if finished is not None:
            at = count(finished)
            self.steps_hint.setText(f"The run finished at step {at}. To train further, enter a larger number.")


def _fill(box: ComboBox, choices: Iterable[tuple[str, Any]]) -> None:
    """Offer other choices; the chosen one stays if it is among them, else the first is."""
    chosen = box.currentData()
    box.clear()
    for text, choice in choices:
        box.addItem(text, choice)
    box.setCurrentIndex(max(0, box.findData(chosen)) if chosen is not None else 0)
