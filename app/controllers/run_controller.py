"""Start, stop, resume and closing: decides what each does, and which of them are available."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.state.available_actions import ActionContext, available_actions
from app.views.widgets.notice_bar import Step
from core.errors import ConfigError, DatasetError, RankdeckError, sentences

if TYPE_CHECKING:
    from app.controllers.draft_checks_controller import DraftChecksController
    from app.controllers.launch_controller import LaunchController
    from app.controllers.run_display import RunDisplay
    from app.controllers.shown_run import Showing
    from app.models.device_table import DeviceTable
    from app.models.run_list import RunList
    from app.settings import Settings
    from app.state.resume_choices import TrainingPlace
    from app.views.dialogs.resume_dialog import ResumeDialog
    from app.views.new_run.machine_groups import MachineGroup
    from app.views.window.main_window import MainWindow
    from core.machine.packages import MissingPackageError
    from core.machines.moving import MovePlan
    from core.resume.plan import ResumePlan
    from core.run_folder.state import RunState

# The setting that remembers where the last state file was opened.
STATE_FILES: Final = "state_files_folder"


class RunController(QObject):
    """Carries out the window's actions on runs.

    `drafting` gives the checks of New run's draft, which are made with its sheet; `install_step` makes the button that
    offers what an error misses.
    """

    def __init__(
        self,
        window: MainWindow,
        launching: LaunchController,
        drafting: Callable[[], DraftChecksController],
        install_step: Callable[[MissingPackageError], Step],
        table: DeviceTable,
        runs: RunList,
        showing: Showing,
        display: RunDisplay,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._launching = launching
        self._drafting = drafting
        self._install_step = install_step
        self._table = table
        self._runs = runs
        self._showing = showing
        self._display = display
        self._settings = settings
        self.dialog: ResumeDialog | None = None
        self._is_sending = False
        self._stops: dict[Path, bool] = {}
        self._closing: set[Path] = set()
        self._then: tuple[Path, Callable[[Path], None]] | None = None
        self._connect()

    def _connect(self) -> None:
        window, launching = self._window, self._launching
        window.actions_.start.triggered.connect(self._on_start_requested)
        window.stop_requested.connect(self._on_stop_requested)
        window.outcome.balance_requested.connect(self._on_balance_requested)
        window.outcome.smaller_batch_requested.connect(self._on_smaller_batch_requested)
        window.actions_.resume.triggered.connect(self._on_resume_requested)
        window.actions_.resume_file.triggered.connect(self._on_resume_file_requested)
        window.runs.resume_requested.connect(self.resume_run)
        window.stop_and_close_requested.connect(self._on_stop_and_close)
        launching.busy_changed.connect(self._on_busy_changed)
        launching.started.connect(self._on_started)
        launching.noted.connect(self._on_noted)
        launching.progressed.connect(self._on_progressed)
        launching.start_failed.connect(self._on_start_failed)
        launching.stop_asked.connect(self._on_stop_asked)
        launching.stop_failed.connect(self._on_stop_failed)
        for changed in (self._runs.listed, self._showing.shown):
            changed.connect(self.show_actions)
        self._display.status_shown.connect(self._on_status_shown)

    def show_actions(self, *_: object) -> None:
        run_dir = self._showing.run_dir
        sheet = self._window.new_run if self._window.has_new_run else None
        context = ActionContext(
            shown=self._display.state,
            recipe=self._display.recipe,
            runs=self._display.entries(),
            name_of=self._runs.model.name_of,
            checked=None if sheet is None else self._drafting().latest,
            ticked=() if sheet is None else sheet.devices.selected(),
            busy=self._launching.busy,
            stop_asked=run_dir in self._stops,
            end_asked=self._stops.get(run_dir, False) if run_dir is not None else False,
        )
        available = available_actions(context)
        self._window.actions_.show_available(available)
        if sheet is not None:
            sheet.mode.sync_interval.set_can_measure(available.measure or "")
            sheet.summary.show_waiting(available.start or "")

    def _on_status_shown(self, state: RunState) -> None:
        if not state.is_live and self._showing.run_dir is not None:
            self._stops.pop(self._showing.run_dir, None)
        self.show_actions()
        if not state.is_live and self._then is not None:
            (run_dir, resume), self._then = self._then, None
            if run_dir == self._showing.run_dir:
                resume(run_dir)

    def _on_progressed(self, text: str) -> None:
        """Says what is sent to another machine or fetched from it."""
        if self.dialog is not None:
            self.dialog.show_progress(text)
            return
        self._is_sending = True
        self._window.notice.say("info", "Another machine", text)

    def _on_busy_changed(self, busy: str) -> None:
        if not busy and self._is_sending:
            self._is_sending = False
            self._window.notice.clear()
        self._window.show_busy(bool(busy))
        self.show_actions()

    # --- start -------------------------------------------------------------------------------------------

    def _on_start_requested(self) -> None:
        text = self._drafting().memory.shown
        if text.is_too_large:
            from app.views.new_run.memory_strip import FitQuestion

            question = FitQuestion(text, self._window)
            question.start_chosen.connect(self._start)
            question.open()
        else:
            self._start()

    def _start(self) -> None:
        checked = self._drafting().latest
        if checked is not None and checked.run is not None:
            self._window.new_run.notice.clear()
            name, group = self._window.new_run.draft().name, self._window.new_run.machines.chosen()
            if group is None:
                self._launching.start(checked.run, name)
            else:
                self._launching.start_there(group.machine, checked.run, name)

    def _on_started(self, run_dir: Path) -> None:
        self._window.new_run.clear_name()
        if self.dialog is not None:
            self.dialog.accept()
        self._stops.pop(run_dir, None)
        self._runs.refresh()
        self._window.actions_.new_run.setChecked(False)
        self._showing.show(run_dir)

    def _on_noted(self, notes: Sequence[str]) -> None:
        new = [note for note in notes if note not in self._window.new_run.summary.noted]
        if new:
            self._window.notice.say("info", "Run started, with notes", sentences(*new))

    def _on_start_failed(self, error: RankdeckError) -> None:
        from core.machine.packages import MissingPackageError

        sheet = self._window.new_run
        step = None
        if isinstance(error, MissingPackageError):
            step = self._install_step(error)
        elif isinstance(error, DatasetError):
            sheet.show_refusal(ConfigError("dataset_file", error.cause, error.window_step, title=error.title))
            step = Step("Choose &data…", sheet.data.choose_file)
        self._window.actions_.new_run.setChecked(True)
        if isinstance(error, ConfigError) and sheet.marks(error.field):
            sheet.show_refusal(error)  # said once, beside the field
        else:
            sheet.notice.show_error(error, step)

    # --- stop and close ----------------------------------------------------------------------------------

    def stop_run(self, run_dir: Path, now: bool = False) -> None:
        """Stops a run, whichever is shown."""
        self._stops[run_dir] = now
        self.show_actions()
        self._launching.stop(run_dir, now)

    def _on_stop_requested(self, now: bool) -> None:
        if self._showing.run_dir is not None:
            self.stop_run(self._showing.run_dir, now)

    def _on_stop_asked(self, run_dir: Path) -> None:
        if run_dir in self._closing:
            self._closing.remove(run_dir)
            if not self._closing:
                self._window.close_now()

    def _on_stop_failed(self, error: RankdeckError) -> None:
        self._closing.clear()
        self._then = None
        if self._showing.run_dir is not None:
            self._stops.pop(self._showing.run_dir, None)
        self._window.notice.show_error(error)
        self.show_actions()

    def _on_stop_and_close(self) -> None:
        """Closes the window once every host has the request; saving does not need the window."""
        self._closing = set(self._display.live_runs())
        for run_dir in self._closing:
            self._stops[run_dir] = False
            self._launching.stop(run_dir)
        self.show_actions()
        if not self._closing:
            self._window.close_now()

    # --- resume ------------------------------------------------------------------------------------------

    def _stop_then(self, resume: Callable[[Path], None]) -> None:
        """Stops the shown run, to be resumed once it has ended, unless another one is shown by then."""
        if self._showing.run_dir is not None:
            self._then = self._showing.run_dir, resume
            self._on_stop_requested(False)

    def _on_balance_requested(self) -> None:
        self._stop_then(self._resume_balanced)

    def _resume_balanced(self, run_dir: Path) -> None:
        """Asks how to resume with load balancing."""
        if (dialog := self._open_dialog()) is not None:
            from app.state.resume_choices import BALANCED

            dialog.choose(str(run_dir), BALANCED)

    def _on_smaller_batch_requested(self, micro: int, accumulation: int) -> None:
        """Stops the shown run and resumes it at once in smaller micro-batches: one click is the answer."""
        changes: dict[str, object] = {"batch_size": micro, "grad_accum_steps": accumulation}
        self._stop_then(functools.partial(self._resume_changed, changes))

    def _resume_changed(self, changes: dict[str, object], run_dir: Path) -> None:
        def refused(error: RankdeckError) -> None:
            from core.recipes.outside_code import OutsideCodeError

            if not isinstance(error, OutsideCodeError):
                self._window.notice.show_error(error)
            elif (dialog := self._open_dialog()) is not None:  # it names the run's code and asks for trust in it
                dialog.choose(str(run_dir), more=changes)

        self._launching.resume_with(str(run_dir), changes, self._table.devices, refused)

    def _on_resume_requested(self) -> None:
        dialog = self._open_dialog()
        state, run_dir = self._display.state, self._showing.run_dir
        if dialog is not None and run_dir is not None and state is not None and not state.is_live:
            dialog.choose(str(run_dir))

    def _on_resume_file_requested(self) -> None:
        if (dialog := self._open_dialog()) is not None:
            dialog.open_file.click()

    def resume_run(self, run_dir: Path) -> None:
        if (dialog := self._open_dialog()) is not None:
            dialog.choose(str(run_dir))

    def _open_dialog(self) -> ResumeDialog | None:
        """A new dialog; None where there is one already, which is brought to the front."""
        if self.dialog is not None:
            self.dialog.raise_()
            return None
        from app.state.draft import mode_changes
        from app.state.resume_choices import TrainingPlace
        from app.views.dialogs.resume_dialog import ResumeDialog  # here, as other dialogs: the window opens without it
        from core.machine.devices import device_texts

        sheet = self._window.new_run
        here = TrainingPlace("", self._table.devices, device_texts(sheet.devices.selected()))
        dialog = ResumeDialog(
            self._display.entries(),
            mode_changes(sheet.draft()),
            [here, *map(_place_of, sheet.machines.groups.values())],
            self._runs.model.machines(),
            self._settings.text(STATE_FILES) or str(self._launching.runs_dir),
            self._runs.model.names(),
            self._window,
        )
        dialog.folder_chosen.connect(lambda folder: self._settings.set_text(STATE_FILES, folder))
        dialog.plan_requested.connect(self._on_plan_requested)
        dialog.resume_requested.connect(self._on_plan_agreed)
        dialog.finished.connect(self._on_dialog_finished)
        self._launching.planned.connect(dialog.show_plan)
        self._launching.plan_failed.connect(dialog.show_error)
        sheet.machines.looked.connect(self._on_machine_looked)
        self.dialog = dialog
        dialog.open()
        return dialog

    def _on_machine_looked(self, group: MachineGroup) -> None:
        if self.dialog is not None:
            self.dialog.form.set_place(_place_of(group))

    def _on_plan_requested(self, text: str, changes: dict[str, object], name: str) -> None:
        group = self._window.new_run.machines.groups.get(name)
        self._launching.plan(text, changes, self._table.devices, None if group is None else group.machine)

    def _on_plan_agreed(self, plan: ResumePlan | MovePlan) -> None:
        if self.dialog is not None:
            self.dialog.show_busy()
        self._launching.resume(plan)

    def _on_dialog_finished(self, _result: int) -> None:
        self._window.new_run.machines.looked.disconnect(self._on_machine_looked)
        self.dialog = None


def _place_of(group: MachineGroup) -> TrainingPlace:
    from app.state.resume_choices import TrainingPlace
    from core.machine.devices import device_texts

    devices = () if group.look is None else group.look.devices
    return TrainingPlace(group.machine.name, devices, device_texts(group.selected()))
