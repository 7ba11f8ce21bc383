"""Resume: the dialog that plans it, and stopping a run to resume it changed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from app.devices.device_table import DeviceTable
    from app.launch.resume_choices import TrainingPlace
    from app.launch.resume_dialog import ResumeDialog
    from app.new_run.machine_groups import MachineGroup
    from app.run.launch_controller import LaunchController
    from app.runs.run_list import RunList
    from app.shown_run.shown_run_controller import ShownRunController
    from app.window.main_window import MainWindow
    from app.window.run_display_controller import RunDisplayController
    from core.errors import RankdeckError
    from core.machines.moving import MovePlan
    from core.resume.plan import ResumePlan
    from core.run_folder.state import RunState


class ResumeController(QObject):
    """Carries out the window's intents to resume runs; `dialog` is None while it is closed."""

    def __init__(
        self,
        window: MainWindow,
        launching: LaunchController,
        stop_run: Callable[[Path], None],
        table: DeviceTable,
        runs: RunList,
        showing: ShownRunController,
        display: RunDisplayController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._launching, self._stop_run = window, launching, stop_run
        self._table, self._runs, self._showing, self._display = table, runs, showing, display
        self.dialog: ResumeDialog | None = None
        self._is_sending = False
        self._then: tuple[Path, Callable[[Path], None]] | None = None
        window.outcome.balance_requested.connect(lambda: self._stop_then(self._resume_balanced))
        window.outcome.smaller_batch_requested.connect(self._on_smaller_batch_requested)
        window.actions_.resume.triggered.connect(self._on_resume_requested)
        window.actions_.resume_file.triggered.connect(self._on_resume_file_requested)
        window.runs.resume_requested.connect(self.resume_run)
        launching.started.connect(self._on_started)
        launching.stop_failed.connect(self._on_stop_failed)
        launching.progressed.connect(self._on_progressed)
        launching.busy_changed.connect(self._on_busy_changed)
        display.status_shown.connect(self._on_status_shown)

    def _on_started(self, _run_dir: Path) -> None:
        if self.dialog is not None:
            self.dialog.accept()

    def _on_progressed(self, text: str) -> None:
        if self.dialog is not None:
            self.dialog.show_progress(text)
        else:
            self._is_sending = True
            self._window.notice.say("info", "Another machine", text)

    def _on_busy_changed(self, busy: str) -> None:
        if not busy and self._is_sending:
            self._is_sending = False
            self._window.notice.clear()

    # --- stop first --------------------------------------------------------------------------------------

    def _on_status_shown(self, state: RunState) -> None:
        if not state.is_live and self._then is not None:
            (run_dir, resume), self._then = self._then, None
            if run_dir == self._showing.run_dir:
                resume(run_dir)

    def _on_stop_failed(self, _error: RankdeckError) -> None:
        self._then = None

    def _stop_then(self, resume: Callable[[Path], None]) -> None:
        """Stop the shown run, and resume it once it has ended, unless another one is shown by then."""
        if self._showing.run_dir is not None:
            self._then = self._showing.run_dir, resume
            self._stop_run(self._showing.run_dir)

    def _resume_balanced(self, run_dir: Path) -> None:
        if (dialog := self._open_dialog()) is not None:
            from app.launch.resume_choices import BALANCED

            dialog.choose(str(run_dir), BALANCED)

    def _on_smaller_batch_requested(self, micro: int, accumulation: int) -> None:
        """Stop the shown run and resume it at once in smaller micro-batches: one click is the answer."""
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

    # --- the dialog --------------------------------------------------------------------------------------

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
        """Open a dialog; return None where there is one already, which is brought to the front."""
        if self.dialog is not None:
            self.dialog.raise_()
            return None
        from app.draft.draft import mode_changes
        from app.launch.resume_choices import TrainingPlace

        # Here, as other dialogs: the window opens without it.
        from app.launch.resume_dialog import ResumeDialog
        from core.machine.devices import device_texts

        sheet = self._window.new_run
        here = TrainingPlace("", self._table.devices, device_texts(sheet.devices.selected()))
        dialog = ResumeDialog(
            self._display.entries(),
            mode_changes(sheet.draft()),
            [here, *map(_place_of, sheet.machines.groups.values())],
            self._runs.model.machines(),
            self._runs.model.names(),
            self._window,
        )
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
    from app.launch.resume_choices import TrainingPlace
    from core.machine.devices import device_texts

    devices = () if group.look is None else group.look.devices
    return TrainingPlace(group.machine.name, devices, device_texts(group.selected()))
