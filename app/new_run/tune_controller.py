"""Control of New run's *Tune…*: trials of the draft, and their dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.devices.device_table import DeviceTable
from app.draft.draft import CheckedDraft
from app.draft.draft_checks_controller import DraftChecksController
from app.new_run.new_run_sheet import NewRunSheet
from app.threads.measuring import Measuring
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.tune.tuned import Tuned, check_tunable, fastest, rank_share
from core.measure.tune.tuner import SECONDS, Progress, tune

if TYPE_CHECKING:
    from app.new_run.tune_dialog import TuneDialog

TRAINING: Final = "A run is training. Trials would slow it down, and it would slow them down. Tune when it has ended."
UNFIXED: Final = "Fix the marked settings first."


class TuneController(QObject):
    """Keeps the button current, and carries out the dialog's intents.

    Attributes:
        seconds: For trials and comparison.
        dialog: While it is open.
    """

    def __init__(
        self,
        sheet: NewRunSheet,
        drafting: DraftChecksController,
        table: DeviceTable,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sheet, self._table, self._drafting = sheet, table, drafting
        self._measuring = Measuring(self)
        self._run: ResolvedRun | None = None
        self._made: Tuned | None = None
        self.seconds = SECONDS
        self.dialog: TuneDialog | None = None
        drafting.checked.connect(self._on_checked)
        sheet.summary.tune.clicked.connect(self._on_tune_requested)
        self._measuring.progressed.connect(self._on_progressed)
        self._measuring.found.connect(self._on_found)
        self._measuring.failed.connect(self._on_failed)

    @property
    def is_going(self) -> bool:
        return self._measuring.is_going

    def update(self) -> None:
        """Enable the button, or show the reason why the draft cannot be tuned."""
        why_not = why_not_tunable(self._run, is_training=self._table.has_live_runs)
        if self._drafting.is_elsewhere:
            why_not = "Choose devices of this computer to tune."
        self._sheet.summary.show_tunable(why_not)

    def close(self) -> None:
        self._measuring.close()

    def _on_checked(self, checked: CheckedDraft, _steps_per_epoch: int | None) -> None:
        self._run = checked.run if not checked.problems and not self._drafting.is_elsewhere else None
        self.update()

    def _on_tune_requested(self) -> None:
        run = self._run
        if run is None or self.dialog is not None or self.is_going:
            return
        from app.new_run.tune_dialog import TuneDialog  # here: the window opens without it

        self.dialog = dialog = TuneDialog(about_text(run), self._sheet.window())
        dialog.stop_requested.connect(self._measuring.stop)
        dialog.use_requested.connect(self._on_use_requested)
        dialog.finished.connect(self._on_closed)
        self._made = None
        dialog.open()
        seconds = self.seconds
        self._measuring.start(
            lambda tell, cancelled: tune(run.fitted()[0], seconds=seconds, on_progress=tell, cancelled=cancelled)
        )

    def _on_progressed(self, progress: Progress) -> None:
        if self.dialog is not None:
            best = fastest(progress.results)
            self.dialog.show_progress(progress.doing, progress.share, progress.results, best)

    def _on_found(self, made: Tuned) -> None:
        self._made = made
        if self.dialog is not None:
            self.dialog.show_result(made.sentence, made.results, made.best, can_use=bool(made.changes))

    def _on_failed(self, error: RankdeckError) -> None:
        if self.dialog is not None:
            self.dialog.show_error(error)

    def _on_use_requested(self) -> None:
        if self._made is not None:
            self._sheet.change_settings(self._made.changes)

    def _on_closed(self, _result: int) -> None:
        self.dialog = None


def why_not_tunable(run: ResolvedRun | None, *, is_training: bool) -> str:
    """Why a draft cannot be tuned, as a sentence; empty where it can. Without a `run` a setting is wrong."""
    if run is None:
        return UNFIXED
    try:
        check_tunable(run)
    except RankdeckError as error:
        return f"{error.cause} {error.window_step}"
    return TRAINING if is_training else ""


def about_text(run: ResolvedRun) -> str:
    each = " of each device" if run.mode.is_apart else ""
    devices = "one device" if run.world_size == 1 else f"{run.world_size} devices"
    return (
        f"Real steps in {run.mode.label} on {devices} show which micro-batch is fastest. The global batch{each} stays "
        f"{run.batch.global_}, so micro-batches up to {rank_share(run)} can be tried. Nothing is trained or saved."
    )
