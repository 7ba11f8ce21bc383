"""The shown run: opens it in the models, reads its config, finds the live one when the window opens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError
from core.held_files import read_utf8
from core.run_folder.store import RunEntry, RunStore

if TYPE_CHECKING:
    from app.settings import Settings
    from app.shown_run.ledger_data import LedgerData
    from app.shown_run.rank_log import LogChoice, RankLog
    from app.shown_run.run_data import RunData
    from core.compare.settings import ChangedSetting
    from core.config.run_config import RunConfig
    from core.run_folder.state import RunState


class ShownRunController(QObject):
    """Opens a run in every model that shows a part of it.

    Attributes:
        is_closed: The window goes: nothing is read or shown any more.

    Signals:
        config_read: ``(text of run.toml, RunConfig, its ChangedSettings)``.
        logs_changed: The log files of its processes.
    """

    shown = Signal(object)
    config_read = Signal(str, object, object)
    config_failed = Signal(object)
    logs_changed = Signal(object)
    failed = Signal(object)

    def __init__(
        self,
        runner: OperationRunner,
        data: RunData,
        ledger: LedgerData,
        log: RankLog,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._runner = runner
        self._data = data
        self._ledger = ledger
        self._log = log
        self._settings = settings
        self._looked = False
        self.is_closed = False
        self._logs_of: tuple[Path, int, int] | None = None
        self.run_dir: Path | None = None
        data.status_changed.connect(self._on_status_changed)

    def show(self, run_dir: Path) -> None:
        """Shows a run from its first point, also if it is shown already."""
        self._looked = True
        # A list or a click that comes late would start threads that are never ended.
        if self.is_closed:
            return
        try:
            self._data.open(run_dir)
        except RankdeckError as error:
            self.failed.emit(error)
            return
        self.run_dir, self._logs_of = run_dir, None
        self._settings.set_text("last_run", str(run_dir))
        self._ledger.open(run_dir)
        self._read_config(run_dir)
        self.shown.emit(run_dir)

    def show_none(self) -> None:
        """Shows no run, and closes the files of the one before."""
        self._looked = True
        for feed in (self._data, self._ledger, self._log):
            feed.close(wait=False)
        self.run_dir, self._logs_of = None, None
        self._settings.set_text("last_run", "")
        self.shown.emit(None)

    def show_again(self) -> None:
        if self.run_dir is not None:
            self.show(self.run_dir)

    def show_log(self, choice: LogChoice | None) -> None:
        if choice is None or self.is_closed:
            self._log.close(wait=False)
        elif choice != self._log.choice:
            self._log.open(choice)

    def close(self) -> None:
        self.is_closed = True
        for feed in (self._data, self._ledger, self._log):
            feed.close()

    def on_listed(self, entries: Sequence[RunEntry]) -> None:
        """Shows a live run of the first list, else the one that was shown last."""
        if self._looked:
            return
        self._looked = True
        live = next((entry.path for entry in entries if entry.state is not None and entry.state.is_live), None)
        last = self._settings.text("last_run")
        again = next((entry.path for entry in entries if last and entry.path == Path(last)), None)
        chosen = live or again
        if chosen is not None:
            self.show(chosen)

    def _read_config(self, run_dir: Path) -> None:
        def work() -> tuple[str, RunConfig, tuple[ChangedSetting, ...]]:
            from core.compare.settings import changed_settings  # here: the window opens without it

            store = RunStore.open(run_dir)
            config = store.config()
            return read_utf8(store.run_toml), config, changed_settings(config)

        self._runner.run(Operation(work, lambda read: self.config_read.emit(*read), self.config_failed.emit, "config"))

    def _on_status_changed(self, state: RunState) -> None:
        if self.run_dir is None:
            return
        asked = (self.run_dir, state.attempt, state.world_size)
        if asked == self._logs_of:
            return
        self._logs_of = asked
        logs = RunStore(self.run_dir).logs
        # An attempt before may have had more ranks, and the reason for this one stands in their logs.
        there = [int(path.stem[4:]) for path in logs.glob("rank*.log") if path.stem[4:].isdecimal()]
        many = max(1, state.world_size, *(rank + 1 for rank in there))
        self.logs_changed.emit([*(logs / f"rank{rank}.log" for rank in range(many)), logs / "host.log"])
