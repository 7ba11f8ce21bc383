"""Control of Slurm: submits what New run holds, and keeps the lines of jobs current while they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.background import Operation, OperationRunner
from app.views.widgets.open_outside import open_path
from core.launch.slurm.batch_file import SlurmRequest
from core.launch.slurm.commands import has_slurm

if TYPE_CHECKING:
    from app.views.dialogs.slurm_dialog import JobLine, SlurmDialog
    from app.views.window.main_window import MainWindow
    from core.errors import RankdeckError
    from core.launch.resolved import ResolvedRun
    from core.launch.slurm.submission import Submission

_LOOK_MS: Final = 4_000
_SHOWN: Final = 6
"""Jobs; older ones are runs like any other."""
NOT_STARTED: Final = "Fix the settings of New run first."


class SlurmControl(QObject):
    """Opens the dialog from New run, where Slurm is installed.

    Args:
        chosen: What New run would train; None while a setting is wrong.

    Attributes:
        dialog: Once it was opened.

    Signals:
        changed: A job was submitted or cancelled.
    """

    changed = Signal()

    def __init__(
        self,
        window: MainWindow,
        chosen: Callable[[], ResolvedRun | None],
        runs_dir: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._chosen, self._runs_dir = window, chosen, runs_dir
        self._runner = OperationRunner(self)  # a controller that does not answer must not hold up anything else
        self.dialog: SlurmDialog | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self.look)
        header = window.new_run.header
        header.slurm.setVisible(has_slurm())
        header.slurm_requested.connect(self.open)

    def open(self) -> None:
        """Shows the dialog; it stays as it was left."""
        from app.views.dialogs.slurm_dialog import SlurmDialog  # here: the window opens without it

        if self.dialog is None:
            self.dialog = dialog = SlurmDialog(self._window)
            dialog.submit_requested.connect(self._on_submit_requested)
            dialog.cancel_requested.connect(self._on_cancel_requested)
            dialog.again_requested.connect(self._on_again_requested)
            dialog.log_requested.connect(self._on_log_requested)
            dialog.finished.connect(self._timer.stop)
        self._show_draft()
        self.dialog.show()
        self.dialog.raise_()
        self._timer.start()
        self.look()

    def look(self) -> None:
        """Asks Slurm for the jobs."""
        runs_dir = self._runs_dir

        def work() -> list[JobLine]:
            return job_lines(runs_dir)

        def looked(lines: list[JobLine]) -> None:
            if self.dialog is not None:
                self.dialog.show_jobs(lines)

        self._show_draft()
        self._runner.run(Operation(work, looked, self._show_error, topic="look"))

    def close(self) -> None:
        """Ends what is being asked."""
        self._timer.stop()
        self._runner.close()

    def _show_draft(self) -> None:
        if self.dialog is None:
            return
        run = self._chosen()
        self.dialog.show_problem("" if run is not None else NOT_STARTED)
        if run is not None:
            self.dialog.show_cpu_devices(max(1, sum(device.kind == "cpu" for device in run.devices)))

    def _on_submit_requested(self, asked: SlurmRequest) -> None:
        run, runs_dir, dialog = self._chosen(), self._runs_dir, self.dialog
        if run is None or dialog is None:
            return
        cpus = tuple(f"cpu:{number}" for number in range(asked.cpus_per_task))

        def work() -> tuple[Path, Submission]:
            from core.launch.slurm.run_job import submit_new_run

            return submit_new_run(run.config, run.recipe, runs_dir, asked, cpus)

        def done(made: tuple[Path, Submission]) -> None:
            dialog.notice.say("success", "Submitted", f"Job {made[1].number}: {made[1].name}")
            self._on_changed()

        dialog.notice.clear()
        dialog.show_problem("The run is being submitted.")
        self._runner.run(Operation(work, done, self._show_error))

    def _on_cancel_requested(self, run_dir: Path) -> None:
        def work() -> None:
            from core.launch.slurm.commands import cancel
            from core.launch.slurm.submission import read_submission

            made = read_submission(run_dir)
            if made is not None:
                cancel(made.number)

        self._runner.run(Operation(work, lambda _: self._on_changed(), self._show_error))

    def _on_again_requested(self, run_dir: Path) -> None:
        def work() -> Submission:
            from core.launch.slurm.submission import submit_again

            return submit_again(run_dir)

        self._runner.run(Operation(work, lambda _: self._on_changed(), self._show_error, topic=f"again {run_dir}"))

    def _on_changed(self) -> None:
        self.look()
        self.changed.emit()

    def _on_log_requested(self, run_dir: Path) -> None:
        from core.launch.slurm.submission import log_of

        path = log_of(run_dir)
        open_path(path if path.exists() else path.parent, self._window.notice)

    def _show_error(self, error: RankdeckError) -> None:
        if self.dialog is not None:
            self.dialog.notice.show_error(error)
            self._show_draft()


def job_lines(runs_dir: Path) -> list[JobLine]:
    """The newest submitted runs, as Slurm knows their jobs now. Blocks."""
    from app.views.dialogs.slurm_dialog import JobLine
    from core.launch.slurm.submission import look_at, submissions

    lines = []
    for run_dir, made in submissions(runs_dir)[:_SHOWN]:
        job = look_at(run_dir, made)
        text = f"Job {made.number} is no longer known to Slurm." if job is None else job.text
        step = "" if job is None else job.next_step
        is_going = job is not None and not job.has_ended
        can_continue = job is None or (job.has_ended and job.state != "COMPLETED")
        lines.append(JobLine(run_dir, made.name, f"{text} {step}".strip(), is_going, can_continue))
    return lines
