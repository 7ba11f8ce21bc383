"""Slurm dialog: submits what New run holds, and shows the jobs of submitted runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QSpinBox, QVBoxLayout, QWidget

from app.views.widgets.action_buttons import OutlinedButton
from app.views.widgets.build import bold_label, label_grid, lay_column, lay_row, muted_label, named
from app.views.widgets.buttons import PrimaryButton
from app.views.widgets.elided_label import ElidedLabel
from app.views.widgets.notice_bar import NoticeBar
from core.launch.nodes.request import AUTO_NIC
from core.launch.slurm.batch_file import SlurmRequest

_MOST_NODES: Final = 1024
_MOST_GPUS: Final = 64
ABOUT: Final = (
    "Before the time limit and at a preemption, the run saves a checkpoint, waits in the queue again and continues."
)
NO_JOBS: Final = "No run was submitted yet."


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as it is shown.

    Attributes:
        run_dir: Its run's folder.
        name: The run's.
        text: Its state.
        is_going: It can be cancelled.
        can_continue: It has ended, and its run has not.
    """

    run_dir: Path
    name: str
    text: str
    is_going: bool
    can_continue: bool = False


class SlurmDialog(QDialog):
    """Asks for nothing itself, and submits nothing.

    Signals:
        submit_requested: A `SlurmRequest`; what it trains is New run's.
        cancel_requested: The folder of a run whose job is to be cancelled.
        again_requested: The folder of a run that is to be submitted again.
        log_requested: The folder of a run whose job's log is to be shown.
    """

    submit_requested = Signal(object)
    cancel_requested = Signal(object)
    again_requested = Signal(object)
    log_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Slurm")
        self._cpus = 1
        self._of_several: tuple[QWidget, ...] = ()
        self.notice = NoticeBar()
        self.partition = named(QLineEdit(), "Partition", "Empty: the cluster's own")
        self.partition.setPlaceholderText("the cluster's own")
        self.time_limit = named(QLineEdit(), "Time limit", "Such as 8:00:00, or 2-00:00:00 for two days")
        self.time_limit.setPlaceholderText("the cluster's own")
        self.account = named(QLineEdit(), "Account", "What the job is charged to")
        self.account.setPlaceholderText("your own default")
        self.nodes = named(QSpinBox(), "Nodes", "How many machines train")
        self.nodes.setRange(1, _MOST_NODES)
        self.least = named(
            QSpinBox(), "At least", "With fewer nodes than above the run starts, and continues if one fails"
        )
        self.least.setRange(1, 1)
        self.nodes.valueChanged.connect(self._show_nodes)
        self.nic = named(QLineEdit(), "Network interface", "That of the nodes, by its name there, such as ib0")
        self.nic.setPlaceholderText("the one by which Slurm knows a node")
        self.gpus = named(QSpinBox(), "GPUs per node", "How many GPUs each machine trains on")
        self.gpus.setRange(0, _MOST_GPUS)
        self.gpus.setValue(1)
        self.submit = PrimaryButton("&Submit")
        self.submit.clicked.connect(self._on_submit)
        fields = (self.partition, self.account, self.time_limit, self.nodes, self.least, self.nic, self.gpus)
        grid = label_grid(None, 130)
        for row, editor in enumerate(fields):
            label = QLabel(editor.accessibleName())
            label.setBuddy(editor)
            grid.addWidget(label, row, 0)
            grid.addWidget(editor, row, 1)
            if editor in (self.least, self.nic):
                self._of_several += (label, editor)
        self._cpu_note = muted_label(wraps=True)
        self.gpus.valueChanged.connect(self._show_devices)
        self._about = muted_label(ABOUT)
        self._jobs = QWidget()
        self._lines = QVBoxLayout(self._jobs)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(8)
        head = (self.notice, bold_label("Submit the settings of New run"), grid, self._cpu_note, self._about)
        foot = lay_row(None, None, self.submit)
        jobs = (bold_label("Jobs"), self._jobs)
        lay_column(self, *head, foot, *jobs, None, spacing=10, margins=(16, 16, 16, 16))
        self.resize(580, 500)
        self._show_nodes(1)
        self.show_problem("")
        self.show_jobs([])

    def show_cpu_devices(self, count: int) -> None:
        """How many CPU devices are selected in New run, for a run without GPUs."""
        self._cpus = count
        self._show_devices()

    def show_problem(self, why_not: str) -> None:
        """Why nothing can be submitted now; empty where it can."""
        self.submit.setEnabled(not why_not)
        self.submit.setToolTip(f"Unavailable: {why_not}" if why_not else "Submit the run (sbatch)")

    def show_jobs(self, jobs: Sequence[JobLine]) -> None:
        """The newest submitted runs."""
        while (item := self._lines.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for job in jobs:
            self._lines.addWidget(self._line(job))
        if not jobs:
            self._lines.addWidget(muted_label(NO_JOBS))

    def _line(self, job: JobLine) -> QWidget:
        line = QWidget()
        name, text = ElidedLabel(), muted_label(job.text)
        name.set_full_text(job.name)
        text.setTextFormat(Qt.TextFormat.PlainText)
        log = named(OutlinedButton("&Log"), f"Log of {job.name}", "Show what the job has printed")
        log.clicked.connect(functools.partial(self.log_requested.emit, job.run_dir))
        cancel = named(OutlinedButton("&Cancel"), f"Cancel {job.name}", "Cancel the job")
        cancel.clicked.connect(functools.partial(self.cancel_requested.emit, job.run_dir))
        cancel.setVisible(job.is_going)
        again = named(OutlinedButton("Submit &again"), f"Submit {job.name} again", "Continue the run in a new job")
        again.clicked.connect(functools.partial(self.again_requested.emit, job.run_dir))
        again.setVisible(job.can_continue)
        names = lay_column(None, name, text, spacing=2)
        row = lay_row(line, names, again, log, cancel, spacing=8)
        row.setStretch(0, 1)
        return line

    def _show_nodes(self, count: int) -> None:
        """What is said of several nodes; the least number follows while it is all of them."""
        was_all = self.least.value() == self.least.maximum()
        self.least.setMaximum(count)
        if was_all:
            self.least.setValue(count)
        for widget in self._of_several:
            widget.setEnabled(count > 1)

    def _show_devices(self) -> None:
        devices = f"{self._cpus} CPU device{'' if self._cpus == 1 else 's'}"
        self._cpu_note.setVisible(self.gpus.value() == 0)
        self._cpu_note.setText(f"Without GPUs, each node trains on {devices}, as selected in New run.")

    def _on_submit(self) -> None:
        gpus = self.gpus.value()
        self.submit_requested.emit(
            SlurmRequest(
                self.least.value(),
                self.nodes.value(),
                nic=self.nic.text().strip() or AUTO_NIC,
                gpus_per_node=gpus,
                cpus_per_task=0 if gpus else self._cpus,
                partition=self.partition.text().strip(),
                time_limit=self.time_limit.text().strip(),
                account=self.account.text().strip(),
            )
        )
