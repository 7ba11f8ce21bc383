"""The Slurm job of the shown run: a line of its header, current while the job continues."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer

from app.threads.background import Operation, OperationRunner

if TYPE_CHECKING:
    from app.run.run_header import RunHeader
    from app.shown_run.shown_run_controller import ShownRunController
    from core.errors import RankdeckError

# Between two questions to the controller, which many users share.
_LOOK_MS: Final = 5_000
# `core.launch.slurm.batch_file.FOLDER`.
_FOLDER: Final = "slurm"


@dataclass(frozen=True, slots=True)
class JobText:
    """Text about a run's job.

    Attributes:
        text: Its line; empty: nothing.
        is_going: It will change.
    """

    text: str = ""
    is_going: bool = False


class ShownJobController(QObject):
    """Asks Slurm for the job of the run that is shown, where that was submitted."""

    def __init__(self, header: RunHeader, showing: ShownRunController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._header, self._showing = header, showing
        self._runner = OperationRunner(self)  # a controller that does not answer must not hold up anything else
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self.look)
        showing.shown.connect(self._on_shown)

    def look(self) -> None:
        """Asks, and again in a while if the job continues."""
        run_dir = self._showing.run_dir
        if run_dir is None:
            return

        def looked(found: JobText) -> None:
            if run_dir == self._showing.run_dir:
                self._header.show_job(found.text)
                if found.is_going:
                    self._timer.start()

        def failed(error: RankdeckError) -> None:
            looked(JobText(error.cause, is_going=True))

        self._runner.run(Operation(lambda: job_text(run_dir), looked, failed, topic="job"))

    def close(self) -> None:
        self._timer.stop()
        self._runner.close()

    def _on_shown(self, _: Path | None) -> None:
        self._timer.stop()
        self._header.show_job("")
        self.look()


def job_text(run_dir: Path) -> JobText:
    """The state of a run's job in Slurm. Blocks.

    Raises:
        RankdeckError: Slurm does not answer, or the file with the job's number is damaged.
    """
    if not (run_dir / _FOLDER).is_dir():  # most runs have none, and the window opens without those modules
        return JobText()
    from core.launch.slurm.jobs import has_slurm, look
    from core.launch.slurm.submission import read_submission

    made = read_submission(run_dir)
    if made is None:
        return JobText()
    if not has_slurm():
        return JobText(f"Submitted as job {made.number} to a Slurm that is not on this computer.")
    job = look(made.number)
    if job is None or job.state == "COMPLETED":
        return JobText()
    return JobText(f"{job.text} {job.next_step}".strip(), is_going=not job.has_ended)
