"""Start, stop and closing: decides what each does, and which actions on runs are available."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.actions.available_actions import ActionContext, available_actions
from app.widgets.notice_bar import Step
from core.errors import ConfigError, DatasetError, RankdeckError, sentences

if TYPE_CHECKING:
    from app.draft.draft_checks_controller import DraftChecksController
    from app.run.launch_controller import LaunchController
    from app.runs.run_list import RunList
    from app.shown_run.shown_run_controller import ShownRunController
    from app.window.main_window import MainWindow
    from app.window.run_display_controller import RunDisplayController
    from core.machine.packages import MissingPackageError
    from core.run_folder.state import RunState

# Long enough to read them; they must not stay over the charts.
NOTES_MS: Final = 20_000


class RunController(QObject):
    """Carries out the window's actions on runs; `drafting` returns the checks of New run's draft."""

    def __init__(
        self,
        window: MainWindow,
        launching: LaunchController,
        drafting: Callable[[], DraftChecksController],
        install_step: Callable[[MissingPackageError], Step],
        runs: RunList,
        showing: ShownRunController,
        display: RunDisplayController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._launching = launching
        self._drafting = drafting
        self._install_step = install_step
        self._runs = runs
        self._showing = showing
        self._display = display
        self._stops: dict[Path, bool] = {}
        self._closing: set[Path] = set()
        self._connect()

    def _connect(self) -> None:
        window, launching = self._window, self._launching
        window.actions_.start.triggered.connect(self._on_start_requested)
        window.stop_requested.connect(self._on_stop_requested)
        window.stop_and_close_requested.connect(self._on_stop_and_close)
        launching.busy_changed.connect(self._on_busy_changed)
        launching.started.connect(self._on_started)
        launching.noted.connect(self._on_noted)
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
            sheet.summary.show_waiting(available.start or "")

    def _on_status_shown(self, state: RunState) -> None:
        if not state.is_live and self._showing.run_dir is not None:
            self._stops.pop(self._showing.run_dir, None)
        self.show_actions()

    def _on_busy_changed(self, busy: str) -> None:
        self._window.show_busy(bool(busy))
        self.show_actions()

    # --- start -------------------------------------------------------------------------------------------

    def _on_start_requested(self) -> None:
        text = self._drafting().memory.shown
        if text.is_too_large:
            from app.new_run.memory_strip import FitQuestion

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
        self._stops.pop(run_dir, None)
        self._runs.refresh()
        self._window.actions_.new_run.setChecked(False)
        self._showing.show(run_dir)

    def _on_noted(self, notes: Sequence[str]) -> None:
        new = [note for note in notes if note not in self._window.new_run.summary.noted]
        if new:
            self._window.notice.say_briefly("Run started, with notes", sentences(*new), "info", NOTES_MS)

    def _on_start_failed(self, error: RankdeckError) -> None:
        from core.machine.packages import MissingPackageError

        sheet = self._window.new_run
        step = None
        if isinstance(error, MissingPackageError):
            step = self._install_step(error)
        elif isinstance(error, DatasetError):
            sheet.problems.refuse(ConfigError("dataset_file", error.cause, error.window_step, title=error.title))
            step = Step("Choose &data…", sheet.data.choose_file)
        self._window.actions_.new_run.setChecked(True)
        if isinstance(error, ConfigError) and sheet.problems.marks(error.field):
            sheet.problems.refuse(error)  # said once, beside the field
        else:
            sheet.notice.show_error(error, step)

    # --- stop and close ----------------------------------------------------------------------------------

    def stop_run(self, run_dir: Path, now: bool = False) -> None:
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
        if self._showing.run_dir is not None:
            self._stops.pop(self._showing.run_dir, None)
        self._window.notice.show_error(error)
        self.show_actions()

    def _on_stop_and_close(self) -> None:
        """Close the window once every host has the request; saving does not need the window."""
        self._closing = set(self._display.live_runs())
        for run_dir in self._closing:
            self._stops[run_dir] = False
            self._launching.stop(run_dir)
        self.show_actions()
        if not self._closing:
            self._window.close_now()
