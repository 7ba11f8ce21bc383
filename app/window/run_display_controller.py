"""Shows the state, figures, samples and alerts of the shown run in the window."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QMessageBox

from app.run.run_notes import RunNotes
from app.run.run_summary import RunSummary, summarise
from app.runs.run_row import title_text
from app.threads.background import Operation, OperationRunner
from core.machine.devices.names import RankNames, device_label
from core.metrics.last_value import last_value
from core.recipes.main_metric import MainMetrics
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.device_users import live_hosts
from core.run_folder.naming import label
from core.run_folder.notes import RunNotes as UserNotes
from core.run_folder.store import RunEntry, RunStore

if TYPE_CHECKING:
    from app.devices.device_table import DeviceTable
    from app.draft.recipe_list import RecipeList
    from app.run.launch_controller import LaunchController
    from app.run_data.run_series import ChangeSet
    from app.runs.run_list import RunList
    from app.shown_run.ledger_data import LedgerData
    from app.shown_run.run_data import RunData
    from app.shown_run.shown_run_controller import ShownRunController
    from app.window.main_window import MainWindow
    from core.config.run_config import RunConfig
    from core.errors import RankdeckError
    from core.recipes.heroes import Hero
    from core.recipes.manifest import Recipe
    from core.run_folder.state import RunState

# As often as a state comes: figures that change more often can hardly be read, and beside training on the CPU each
# time takes from it.
FIGURES_MS: Final = 1000
# How long ago the checkpoint was made, while nothing else happens.
AGES_MS: Final = 10_000


class RunDisplayController(QObject):
    """Connects the models of the shown run with the views that show it.

    Signals:
        status_shown: The shown run has a new state (`RunState`), and the window shows it.
    """

    status_shown = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        data: RunData,
        runs: RunList,
        table: DeviceTable,
        ledger: LedgerData,
        showing: ShownRunController,
        launching: LaunchController,
        recipes: RecipeList,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._recipes = recipes
        self._runner = runner
        self._model_of: tuple[Path, float] | None = None
        self._figures_due = QTimer(self, singleShot=True, interval=FIGURES_MS)
        self._figures_due.timeout.connect(self._show_figures)
        self._ages = QTimer(self, interval=AGES_MS)
        self._ages.timeout.connect(self._show_figures)
        self._window = window
        self._data = data
        self._runs = runs
        self._table = table
        self._showing = showing
        self._launching = launching
        self._notes = RunNotes()
        self._metrics = MainMetrics()
        self._names = RankNames()
        self._shown_word = ""
        self._connect(ledger)

    def _connect(self, ledger: LedgerData) -> None:
        window, showing, data = self._window, self._showing, self._data
        self._runs.listed.connect(self._on_listed)
        window.runs.run_chosen.connect(showing.show)
        window.runs.settings_wanted.connect(self._runs.want_settings)
        window.actions_.reload.triggered.connect(showing.show_again)
        window.actions_.reload.triggered.connect(self._runs.refresh)
        showing.shown.connect(self._on_shown)
        showing.failed.connect(window.runs.notice.show_error)
        showing.logs_changed.connect(window.tabs.log.set_sources)
        showing.config_read.connect(window.tabs.config.show_config)
        showing.config_failed.connect(window.tabs.config.notice.show_error)
        window.tabs.log.log_chosen.connect(showing.show_log)
        window.tabs.config.copy_requested.connect(self.copy_settings)
        data.status_changed.connect(self._on_status_changed)
        window.uncovered.connect(self._show_figures_soon)
        window.plot_drawn.connect(self._show_figures)
        data.changed.connect(self._on_data_changed)
        data.reset.connect(self._on_data_changed)
        data.reset.connect(window.tabs.log.clear_events)
        data.failed.connect(window.notice.show_error)
        self._table.devices_changed.connect(self._show_names)
        self._table.sampled.connect(window.show_device_samples)
        showing.shown.connect(self._show_names)
        ledger.changed.connect(window.tabs.ledger.show_snapshot)
        ledger.failed.connect(window.tabs.ledger.notice.show_error)

    @property
    def state(self) -> RunState | None:
        return self._data.state

    def entries(self) -> list[RunEntry]:
        """Return all runs; the shown one with the state of its host, which the list has up to a second later."""
        run_dir, state = self._showing.run_dir, self._data.state
        entries = self._runs.model.entries()
        if run_dir is None or state is None:
            return entries
        return [RunEntry(run_dir, state) if entry.path == run_dir else entry for entry in entries]

    def live_runs(self) -> dict[Path, RunState]:
        """Return the live runs; the shown one too where the list does not have it yet."""
        live = {e.path: e.state for e in self.entries() if e.state is not None and e.state.is_live}
        run_dir, state = self._showing.run_dir, self._data.state
        if run_dir is not None and state is not None and state.is_live:
            live.setdefault(run_dir, state)
        return live

    def show_summary(self) -> None:
        state, run_dir = self._data.state, self._showing.run_dir
        if run_dir is None:
            return
        name = self._title_of(run_dir)
        # Nor is NumPy there yet: asking for the series would wait for it.
        if state is None:
            record = self._runs.model.record(run_dir)
            word = "" if record is None or record.entry.state is None else record.entry.word
            self._window.show_summary(RunSummary(word), name)
            return
        recipe = self._recipes.named(state.recipe)
        recipe_title = recipe.title if recipe is not None else ""
        self._window.show_summary(summarise(state, self._data.series, self._names.labels, recipe_title, name), name)

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of the shown run; None where it is not known."""
        return None if self._data.state is None else self._recipes.named(self._data.state.recipe)

    def _title_of(self, run_dir: Path) -> str:
        """The run's name without the parts that its header has beside it."""
        record, state = self._runs.model.record(run_dir), self._data.state
        if record is not None and record.entry.state is not None:
            return title_text(record)
        return state.name if state is not None and state.name else run_dir.name

    def name_of(self, run_dir: Path) -> str:
        """The name in the list, or before it stands there by its state."""
        record = self._runs.model.record(run_dir)
        if record is not None:
            return record.label
        return run_dir.name if self._data.state is None else label(self._data.state, UserNotes())

    def _show_figures(self) -> None:
        state = self._data.state
        self._figures_due.stop()
        if state is None or self._showing.run_dir is None:
            self._ages.stop()
            return
        from app.run.hero_figures import hero_figures, heroes_of  # here: NumPy comes with it

        self.show_summary()
        series, recipe = self._data.series, self._recipes.named(state.recipe)
        named = recipe.heroes if recipe is not None else ()
        heroes = heroes_of(named, series, is_script=state.recipe == USER_SCRIPT)
        self._window.show_figures(hero_figures(heroes, series, state, self._names, time.time()))
        self._show_in_list(state)
        self._window.show_notes(self._notes.of(series))
        self._show_outcome(state, heroes)
        if state.is_live != self._ages.isActive():
            self._ages.start() if state.is_live else self._ages.stop()

    def _show_in_list(self, state: RunState) -> None:
        """Shows the same last value in the list, whose own state has it some seconds later."""
        series, run_dir = self._data.series, self._showing.run_dir
        names = self._metrics.of(state.recipe).names
        found = (last_value(n, [series.rank(rank).last(n) for rank in series.ranks()]) for n in names)
        value = next((one for one in found if one is not None), None)
        if run_dir is not None and value is not None:
            self._runs.model.show_value(run_dir, value)

    def _show_outcome(self, state: RunState, heroes: Sequence[Hero]) -> None:
        from app.run.run_outcome import run_outcome

        has_ended_well = state.state == "finished" or (state.state == "stopped" and bool(state.stopped_by))
        if has_ended_well and not self._data.is_caught_up:
            return  # what was best is not known yet
        outcome = run_outcome(state, self._data.series, heroes, self._notes.pressing, self._notes.stopping)
        run_dir, has_model = self._showing.run_dir, outcome is not None and outcome.kind == "success"
        if has_model and run_dir is not None and self._model_of != (run_dir, state.updated):
            self._model_of = (run_dir, state.updated)
            self._find_model(run_dir, is_script=state.recipe == USER_SCRIPT)
        self._window.outcome.show_outcome(outcome, state.state)

    def _find_model(self, run_dir: Path, *, is_script: bool) -> None:
        from app.run.run_outcome import ModelFile

        model = RunStore(run_dir).model
        if not is_script:
            self._window.outcome.show_model(ModelFile(model.name, str(run_dir), None))

        def work() -> ModelFile | None:
            return ModelFile(model.name, str(model.parent), model.stat().st_size) if model.is_file() else None

        def found(made: ModelFile | None) -> None:
            if run_dir == self._showing.run_dir:
                self._window.outcome.show_model(made)

        def failed(error: RankdeckError) -> None:
            found(None)
            self._window.notice.show_error(error)

        self._runner.run(Operation(work, found, failed, topic="model file"))

    def _on_listed(self, _entries: Sequence[RunEntry]) -> None:
        run_dir = self._showing.run_dir
        self._table.set_hosts(live_hosts(self._runs.model.records()))
        self._show_live()
        if run_dir is not None and self._title_of(run_dir) != self._window.header.title.full_text:
            # Renamed; all else is shown with the next figures.
            self.show_summary()
        self._window.runs.show_current(run_dir)

    def _on_shown(self, run_dir: Path | None) -> None:
        self._model_of, self._shown_word = None, ""
        self._window.show_run(run_dir)

    def _on_status_changed(self, state: RunState) -> None:
        """Shows a state with another word at once, and progress with the next figures."""
        self._show_names()
        if state.state == self._shown_word:
            self._show_figures_soon()
        else:
            self._shown_word = state.state
            self._show_figures()
            self._show_live()
            self._runs.refresh()
        self.status_shown.emit(state)

    def _show_figures_soon(self) -> None:
        """Waits while the window cannot be seen: `uncovered` asks for them again."""
        if not self._figures_due.isActive() and self._window.is_seen:
            self._figures_due.start()

    def _on_data_changed(self, change: ChangeSet | None = None) -> None:
        """Shows changes: rows are many, and each of them is a figure; events are few. None means another run."""
        # What was being read may still arrive while the window's parts are taken apart.
        if self._showing.is_closed:
            return
        if change is not None and change.caught_up:
            self._show_figures()
        else:
            self._show_figures_soon()
        if change is not None:
            if not change.events:
                return
            self._window.tabs.log.add_events(change.events)
        self._window.show_notes(self._notes.of(self._data.series))
        self._window.tabs.samples.show_samples(self._data.samples)
        self._window.tabs.alerts.show_events(self._data.series.events)

    def _show_names(self, *_: object) -> None:
        state = self._data.state
        labels = {device.uuid: device_label(device) for device in self._table.devices}
        names = RankNames(state.devices if state is not None else (), labels)
        if names != self._names:
            self._names = names
            self._window.show_names(names)

    def copy_settings(self, config: RunConfig, run_dir: Path | None = None) -> None:
        """Fills New run with the settings of a run; None means the one that is shown.

        New run previews and estimates what it holds, so code that a received run names is asked about first.
        """
        from core.recipes.outside_code import outside_code

        code = outside_code(config)
        if code is None or code.is_known:
            self._copy_settings(config, run_dir)
            return

        def copy() -> None:
            code.remember()
            self._copy_settings(config, run_dir)

        question = QMessageBox(self._window)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setWindowTitle("Copy settings")
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setText("This run was not started on this computer. Copy its settings?")
        question.setInformativeText("\n".join(code.lines))
        question.addButton("&Copy settings", QMessageBox.ButtonRole.AcceptRole).clicked.connect(copy)
        question.setDefaultButton(question.addButton(QMessageBox.StandardButton.Cancel))
        question.open()

    def _copy_settings(self, config: RunConfig, run_dir: Path | None) -> None:
        from app.draft.draft import draft_from_config

        source = run_dir or self._showing.run_dir
        name = config.recipe if source is None else self.name_of(source)
        self._window.new_run.copy_run(draft_from_config(config, self._table.devices), name)
        self._window.actions_.new_run.setChecked(True)

    def _show_live(self) -> None:
        self._window.set_live([self.name_of(run_dir) for run_dir in self.live_runs()])
