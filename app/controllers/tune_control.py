"""Control of New run's *Tune…*: whether the draft can be tuned, the dialog, and filling in what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.controllers.background import OperationRunner
from app.controllers.draft_checks import Drafting
from app.controllers.tuning import Tuning
from app.models.device_table import DeviceTable
from app.state.draft import CheckedDraft
from app.state.tune_text import about_text, result_text, trial_lines, why_not_tunable
from app.views.new_run.new_run_sheet import NewRunSheet
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.tune.search import fastest
from core.measure.tune.tuned import Tuned
from core.measure.tune.tuner import Progress

if TYPE_CHECKING:
    from app.views.dialogs.tune_dialog import TuneDialog


class TuneControl(QObject):
    """Keeps the row current, and carries out what it asks for."""

    def __init__(
        self,
        sheet: NewRunSheet,
        drafting: Drafting,
        table: DeviceTable,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sheet, self._row, self._table = sheet, sheet.summary.tune, table
        self.tuning = Tuning(runner, drafting.memory.timing.runs_dir, self)
        self._run: ResolvedRun | None = None
        self._is_on_several = False
        self._made: Tuned | None = None
        self.dialog: TuneDialog | None = None
        self._drafting = drafting
        drafting.checked.connect(self._on_checked)
        self._row.tune_requested.connect(self._on_tune_requested)
        self._row.settings_requested.connect(sheet.change_settings)
        self.tuning.earlier_found.connect(self._row.show_earlier)
        self.tuning.progressed.connect(self._on_progressed)
        self.tuning.found.connect(self._on_found)
        self.tuning.failed.connect(self._on_failed)

    @property
    def is_going(self) -> bool:
        """Settings are being tried."""
        return self.tuning.is_going

    def update(self) -> None:
        """Says whether the draft can be tuned now."""
        recipe = self._sheet.chosen_recipe()
        is_script = recipe is not None and recipe.self_contained
        is_training = self._table.has_live_runs
        why_not = why_not_tunable(self._run, is_script=is_script, is_training=is_training)
        if self._drafting.is_elsewhere:
            why_not = "Choose devices of this computer to tune."
        elif self._is_on_several:
            why_not = "Choose this computer alone to tune: the network between machines would count."
        self._row.show_tunable(why_not)

    def close(self) -> None:
        """Ends what is going on."""
        self.tuning.close()

    def _on_checked(self, checked: CheckedDraft, _steps_per_epoch: int | None) -> None:
        self._is_on_several = checked.nodes is not None
        is_here = not self._drafting.is_elsewhere and not self._is_on_several
        self._run = checked.run if not checked.problems and is_here else None
        self.tuning.look_for_earlier(self._run)
        self.update()

    def _on_tune_requested(self) -> None:
        run = self._run
        if run is None or self.dialog is not None or self.tuning.is_going:
            return
        from app.views.dialogs.tune_dialog import TuneDialog  # here: the window opens without it

        self.dialog = dialog = TuneDialog(about_text(run), self._sheet.window())
        dialog.stop_requested.connect(self.tuning.stop)
        dialog.use_requested.connect(self._on_use_requested)
        dialog.finished.connect(self._on_closed)
        self._made = None
        dialog.open()
        self.tuning.start(run)

    def _on_progressed(self, progress: Progress) -> None:
        if self.dialog is not None:
            lines = trial_lines(progress.results, fastest(progress.results))
            self.dialog.show_progress(progress.doing, progress.share, lines)

    def _on_found(self, made: Tuned) -> None:
        self._made = made
        self.tuning.look_for_earlier(self._run)
        if self.dialog is not None:
            lines = trial_lines(made.results, made.best)
            self.dialog.show_result(result_text(made), lines, can_use=bool(made.changes))

    def _on_failed(self, error: RankdeckError) -> None:
        if self.dialog is not None:
            self.dialog.show_error(error)

    def _on_use_requested(self) -> None:
        if self._made is not None:
            self._sheet.change_settings(self._made.changes)

    def _on_closed(self, _result: int) -> None:
        self.dialog = None
