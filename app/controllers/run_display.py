"""Shows the state, figures, samples and alerts of the shown run in the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.run_operations import Launching
from app.controllers.shown_run import Showing
from app.models.device_table import DeviceTable
from app.models.ledger_data import LedgerData
from app.models.run_data import RunData
from app.models.run_list import RunList
from app.run_data.run_series import ChangeSet
from app.state.draft import draft_from_config
from app.state.run_notes import RunNotes
from app.state.run_summary import summarise
from app.views.window.main_window import MainWindow
from core.config.run_config import RunConfig
from core.machine.devices.names import RankNames, device_label
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


class RunDisplay(QObject):
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
        showing: Showing,
        launching: Launching,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._data = data
        self._runs = runs
        self._table = table
        self._showing = showing
        self._launching = launching
        self._notes = RunNotes()
        self._names = RankNames()
        self._connect(ledger)

    def _connect(self, ledger: LedgerData) -> None:
        window, showing, data = self._window, self._showing, self._data
        self._runs.listed.connect(self._on_listed)
        window.runs.run_chosen.connect(showing.show)
        window.runs.settings_wanted.connect(self._runs.want_settings)
        window.actions_.replay.triggered.connect(showing.show_again)
        showing.shown.connect(window.show_run)
        showing.failed.connect(window.runs.notice.show_error)
        showing.logs_changed.connect(window.tabs.log.set_sources)
        showing.config_read.connect(window.tabs.config.show_config)
        showing.config_failed.connect(window.tabs.config.notice.show_error)
        window.tabs.log.log_chosen.connect(showing.show_log)
        window.tabs.config.copy_requested.connect(self._on_copy_requested)
        data.status_changed.connect(self._on_status_changed)
        data.changed.connect(self._on_data_changed)
        data.reset.connect(self._on_data_changed)
        data.reset.connect(window.tabs.log.clear_events)
        data.reset.connect(window.tabs.ledger.clear_events)
        data.changed.connect(self._on_events)
        data.failed.connect(window.notice.show_error)
        self._table.devices_changed.connect(self._show_names)
        showing.shown.connect(self._show_names)
        ledger.changed.connect(window.tabs.ledger.show_snapshot)
        ledger.failed.connect(window.tabs.ledger.notice.show_error)

    @property
    def state(self) -> RunState | None:
        """The shown run's state, as its host reports it."""
        return self._data.state

    def entries(self) -> list[RunEntry]:
        """All runs; the shown one with the state its host reports, which the list has up to a second later."""
        run_dir, state = self._showing.run_dir, self._data.state
        entries = self._runs.model.entries()
        if run_dir is None or state is None:
            return entries
        return [RunEntry(run_dir, state) if entry.path == run_dir else entry for entry in entries]

    def live_runs(self) -> dict[Path, RunState]:
        """The runs that are live; the shown one too where the list does not have it yet."""
        live = {e.path: e.state for e in self.entries() if e.state is not None and e.state.is_live}
        run_dir, state = self._showing.run_dir, self._data.state
        if run_dir is not None and state is not None and state.is_live:
            live.setdefault(run_dir, state)
        return live

    def show_summary(self) -> None:
        """Shows the run's state and figures in the toolbar, unless a run is being started."""
        if self._launching.busy:
            return
        run_dir = self._showing.run_dir
        names = {device.uuid: device.name for device in self._table.devices}
        summary = summarise(self._data.state, self._data.series, names)
        self._window.show_summary(summary, run_dir.name if run_dir is not None else "")

    def _on_listed(self, _entries: Sequence[RunEntry]) -> None:
        self._show_live()
        self._window.runs.show_current(self._showing.run_dir)

    def _on_status_changed(self, state: RunState) -> None:
        self._show_names()
        self.show_summary()
        self._window.show_outcome(state)
        self._show_live()
        self._runs.refresh()
        self.status_shown.emit(state)

    def _on_data_changed(self, *_: object) -> None:
        self.show_summary()
        self._window.show_notes(self._notes.of(self._data.series))
        self._window.tabs.samples.show_samples(self._data.samples)
        self._window.tabs.alerts.show_events(self._data.series.events)

    def _on_events(self, change: ChangeSet) -> None:
        for view in (self._window.tabs.log, self._window.tabs.ledger):
            view.add_events(change.events)

    def _show_names(self, *_: object) -> None:
        state = self._data.state
        labels = {device.uuid: device_label(device) for device in self._table.devices}
        names = RankNames(state.devices if state is not None else (), labels)
        if names != self._names:
            self._names = names
            self._window.show_names(names)

    def _on_copy_requested(self, config: RunConfig) -> None:
        self._window.new_run.set_draft(draft_from_config(config, self._table.devices))
        self._window.actions_.new_run.setChecked(True)

    def _show_live(self) -> None:
        live = self.live_runs()
        scripts = [state for state in live.values() if state.recipe == USER_SCRIPT]
        self._window.set_live([run_dir.name for run_dir in live], len(scripts))
