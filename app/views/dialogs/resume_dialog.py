"""Resume dialog: choose a run, read what resuming will do, then resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QIcon, QPalette
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)

from app.views.widgets.build import bold_label, label_grid, lay_column, named, narrow, scrolled
from app.views.widgets.notice_bar import NoticeBar, Step
from core.config.device_names import count_devices
from core.config.mode import Mode, mode_label
from core.errors import ChunkSizeError, DatasetError, RankdeckError
from core.formatting import count
from core.machine.devices import Device, device_texts
from core.machine.devices.names import SEPARATOR, device_label, label_by_uuid
from core.resume.checkpoint_choice import CheckpointEntry
from core.resume.plan import ResumePlan
from core.run_folder.store import RunEntry

PLAN_AFTER_MS: Final = 250
LOOKING: Final = "Reading the run's checkpoints…"
UNCHANGED: Final = "unchanged"
MODES: Final[Sequence[Mapping[str, str]]] = (
    {"mode": Mode.AUTO},
    {"mode": Mode.DDP},
    {"mode": Mode.INDEPENDENT},
    *({"mode": Mode.ZERO, "zero_stage": stage} for stage in ("1", "2", "3")),
    {"mode": Mode.FSDP},
)
ROWS: Final = (
    ("R&un", ""),
    ("Chec&kpoint", "Resume from an older checkpoint. Newer ones are set aside, not removed."),
    ("Train u&p to step", "Total number of optimizer steps"),
    ("&Dataset", "Needed only if the dataset has moved, or if the state file doesn't name its path"),
    ("D&evices", "Select other devices in New run to use any combination of them."),
    ("&Mode", "A run can be resumed in any mode, whichever mode it was trained in."),
    ("C&hunk size", "The value that the state file was written with, in samples"),
)
"""Labels and tooltips of the fields."""
CHOOSE: Final = "Choose a run, or open a chunk_tracker_state.json to see what resuming will do."


class ResumeDialog(QDialog):
    """Asks for a plan whenever something is changed, and shows it before anything happens.

    Args:
        entries: The runs there are.
        ticked: Devices that are selected in New run, as a run's config names them.
        mode: Mode and settings that are chosen in New run, as changes of a run (`app.state.draft.mode_changes`).
        available: This machine's devices.

    Signals:
        plan_requested: ``(text, changes)`` for `core.resume.planner.plan_resume`.
        resume_requested: The `ResumePlan` that is shown.
    """

    plan_requested = Signal(str, object)
    resume_requested = Signal(object)

    def __init__(
        self,
        entries: Sequence[RunEntry],
        ticked: Sequence[str],
        mode: Mapping[str, str],
        available: Sequence[Device] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Resume a run")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._plan: ResumePlan | None = None
        self.notice = NoticeBar()
        self.run = named(QComboBox(), "Run, or path of a state file")
        self.run.setEditable(True)
        self.run.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        narrow(self.run, 36)
        line = self.run.lineEdit()
        if line is not None:
            line.setPlaceholderText("a run, its folder, or a state file")
        self.open_file = QPushButton("&Open state file…")
        self.open_file.setToolTip("A chunk_tracker_state.json of Rankdeck or of AI-OS")
        self.devices, self.mode, self.checkpoint = QComboBox(), QComboBox(), QComboBox()
        self.trust = QCheckBox("&I trust this code")
        self.trust.setToolTip(
            "The code runs with your permissions: it can read, change and send any file that you can."
        )
        self.steps = QLineEdit(placeholderText=UNCHANGED)
        self.data = QLineEdit(placeholderText=UNCHANGED)
        self.chunk_size = QLineEdit(placeholderText="4000")
        self.message = named(QLabel(CHOOSE, wordWrap=True), "What will happen")
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.button(QDialogButtonBox.StandardButton.Cancel).setIcon(QIcon())  # no other button has a sign
        self.go = self.buttons.addButton("&Resume", QDialogButtonBox.ButtonRole.AcceptRole)
        self._later = QTimer(self, singleShot=True, interval=PLAN_AFTER_MS)
        self._later.timeout.connect(self._ask)
        for text, folder in _run_choices(entries):
            self.run.addItem(text, folder)
        self.run.setCurrentIndex(-1)
        for text, devices in _device_choices(ticked, available):
            self.devices.addItem(text, devices)
        for text, changes in _mode_choices(mode):
            self.mode.addItem(text, changes)
        self._lay_out()
        self._connect()
        self._set_plan(None)

    def _lay_out(self) -> None:
        grid = label_grid(None, line_spacing=8)
        fields = (self.run, self.checkpoint, self.steps, self.data, self.devices, self.mode, self.chunk_size)
        for row, ((text, tip), field) in enumerate(zip(ROWS, fields, strict=True)):
            label = QLabel(text)
            label.setBuddy(field)
            field.setToolTip(tip)
            grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1, 1, 1 if field is self.run else 2)
        self._chunk_label = label
        grid.addWidget(self.open_file, 0, 2)
        for box in (self.devices, self.mode):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._show_chunk_size(False)
        self._offer_checkpoints(())
        self.message.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        scroll = scrolled(self.message)
        scroll.setMinimumHeight(160)
        parts = (grid, bold_label("What will happen"), self.notice, scroll, self.trust, self.buttons)
        lay_column(self, *parts, spacing=12, margins=(16, 16, 16, 12), grow=scroll)
        self.trust.hide()
        self.resize(680, 440)

    def _connect(self) -> None:
        self.run.activated.connect(self._on_edited)
        self.run.activated.connect(self._show_beginning)
        self.run.editTextChanged.connect(self._on_edited)
        self.run.editTextChanged.connect(lambda: self._show_chunk_size(False))
        self.run.editTextChanged.connect(lambda: self._offer_checkpoints(()))
        for box in (self.checkpoint, self.devices, self.mode):
            box.activated.connect(self._on_edited)
        self.run.editTextChanged.connect(self._forget_trust)
        for field in (self.steps, self.data, self.chunk_size):
            field.textEdited.connect(self._on_edited)
        self.trust.toggled.connect(self._on_edited)
        self.open_file.clicked.connect(self._on_open_clicked)
        self.buttons.rejected.connect(self.reject)
        self.go.clicked.connect(self._on_go_clicked)

    # --- what is asked -----------------------------------------------------------------------------------

    def choose(self, text: str) -> None:
        """Chooses a run by its folder, or names a state file."""
        row = self.run.findData(text)
        self.run.setCurrentIndex(row)
        if row < 0:
            self.run.setEditText(text)
        self._show_beginning()
        self._later.stop()
        self._ask()

    def _show_beginning(self, *_: object) -> None:
        """A run's name begins with what tells it apart; the line shows the end of what was filled in."""
        line = self.run.lineEdit()
        if line is not None:
            line.setCursorPosition(0)

    def asked(self) -> tuple[str, dict[str, Any]]:
        """What to resume, and what is to be different."""
        row = self.run.currentIndex()
        typed = self.run.currentText().strip()
        text = str(self.run.itemData(row)) if row >= 0 and self.run.itemText(row) == self.run.currentText() else typed
        changes: dict[str, Any] = {}
        lines = {"steps": self.steps, "dataset_file": self.data, "dataset_chunk_size": self.chunk_size}
        for name, line in lines.items():
            if line.text().strip():
                changes[name] = line.text().strip()
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
        return text, changes

    def _ask(self) -> None:
        text, changes = self.asked()
        self._set_plan(None)
        self.notice.clear()
        if not text:
            self._say(CHOOSE, lesser=True)
            return
        self._say(LOOKING, lesser=True)
        self.plan_requested.emit(text, changes)

    # --- what is answered --------------------------------------------------------------------------------

    def show_plan(self, plan: ResumePlan) -> None:
        """Shows what will happen; the Resume button does it."""
        self.notice.clear()
        if plan.state_file is not None and plan.state_file.chunk_size is None:
            self._show_chunk_size(True)
        self._offer_checkpoints(plan.checkpoints)
        self._say("\n".join(plan.lines()), lesser=False)
        self._set_plan(plan)
        if not plan.code_accepted:
            self.trust.show()
            self.go.setEnabled(False)
            self.go.setToolTip("Read this run's code first, then confirm that you trust it.")

    def show_error(self, error: RankdeckError) -> None:
        """Says why it cannot be resumed so."""
        about_data = isinstance(error, DatasetError) or "dataset" in f"{error.title} {error.cause}".lower()
        step = Step("Choose &dataset…", self._choose_data) if about_data else None
        self.notice.show_error(error, step)
        if isinstance(error, ChunkSizeError):
            self._show_chunk_size(True)
        self._say("Nothing was changed.", lesser=True)
        self._set_plan(None)

    def show_busy(self) -> None:
        """The run is being resumed; it was asked once."""
        self._set_plan(None)
        self.go.setToolTip("The run is being resumed.")
        self._say("Starting the run…", lesser=True)

    def _offer_checkpoints(self, entries: Sequence[CheckpointEntry]) -> None:
        """Fills the choice, newest first, and keeps what is chosen; one that is diverged cannot be resumed from."""
        chosen = self.checkpoint.currentData()
        good = [entry for entry in reversed(entries) if not entry.diverged]
        newest = next((entry for entry in good if not entry.aside), None)
        self.checkpoint.clear()
        self.checkpoint.addItem("Newest" if newest is None else f"Newest: {newest.text}", None)
        for entry in good:
            if entry is not newest:
                self.checkpoint.addItem(entry.text, entry.number)
        self.checkpoint.setCurrentIndex(max(0, self.checkpoint.findData(chosen) if chosen is not None else 0))
        self.checkpoint.setEnabled(len(good) > 1)

    def _show_chunk_size(self, asked: bool) -> None:
        """Only a state file of AI-OS outside its own folder does not say how it cut its blocks."""
        if not asked:
            self.chunk_size.clear()
        self._chunk_label.setVisible(asked)
        self.chunk_size.setVisible(asked)

    def _forget_trust(self) -> None:
        """What was confirmed of one run says nothing of another."""
        with QSignalBlocker(self.trust):
            self.trust.setChecked(False)
        self.trust.hide()

    def _say(self, text: str, lesser: bool) -> None:
        self.message.setText(text)
        role = QPalette.ColorRole.PlaceholderText if lesser else QPalette.ColorRole.WindowText
        self.message.setForegroundRole(role)

    def _set_plan(self, plan: ResumePlan | None) -> None:
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
            self, "Open a state file", "", "State files (chunk_tracker_state.json *.json);;All files (*)"
        )
        if path:
            self.choose(path)

    def _choose_data(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Choose the dataset that the run was started with")
        if path:
            self.data.setText(path)
            self._ask()

    def _on_go_clicked(self) -> None:
        if self._plan is not None:
            self.resume_requested.emit(self._plan)


def _run_choices(entries: Sequence[RunEntry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        state = entry.state
        if state is not None and not state.is_live:
            of = f" / {count(state.total_steps)}" if state.total_steps else ""
            yield f"{entry.path.name}: {state.state}, step {count(state.step)}{of}", str(entry.path)


def _device_choices(ticked: Sequence[str], available: Sequence[Device]) -> Iterator[tuple[str, list[str] | None]]:
    labels = {device.uuid: device_label(device) for device in available}
    yield UNCHANGED, None
    if ticked:
        yield f"selected in New run: {', '.join(_device_text(text, labels) for text in ticked)}", list(ticked)
    for kind, name in (("cuda", "GPUs"), ("cpu", "CPU devices")):
        devices = [device for device in available if device.kind == kind and not device.hidden_by]
        if len(devices) > 1:
            yield f"all {len(devices)} {name}", list(device_texts(devices))
        for device in devices[: 1 if kind == "cpu" else None]:  # one CPU device is as good as another
            yield labels[device.uuid], list(device_texts([device]))


def _mode_choices(mode: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str] | None]]:
    yield UNCHANGED, None
    yield f"as in New run: {_mode_text(mode)}", dict(mode)
    for changes in MODES:
        yield _mode_text(changes), dict(changes)


def _device_text(text: str, labels: Mapping[str, str]) -> str:
    """A device of a config, or a count of CPU devices, in a list of several."""
    if text.startswith("cpux"):
        return f"{text.removeprefix('cpux')} CPU devices"
    return label_by_uuid(text, labels).partition(SEPARATOR)[0]


def _mode_text(mode: Mapping[str, str]) -> str:
    name = mode.get("mode", Mode.AUTO)
    if name == Mode.ZERO:
        return f"ZeRO, stage {mode.get('zero_stage', '1')}"
    if name == Mode.INDEPENDENT and mode.get("sync_every"):
        return f"parallel-independent, synchronised every {mode['sync_every']} steps"
    return mode_label(name, "automatic")
