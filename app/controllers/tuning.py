"""Tunes the draft of New run: trials in a worker thread, shown as they come, and what was found before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal

from app.controllers.background import Operation, OperationRunner
from app.state.tune_text import EarlierText, earlier_text
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.ranks import CancelledError
from core.measure.tune.remembered import FILE, earlier_tuning, remember
from core.measure.tune.tuned import Tuned
from core.measure.tune.tuner import SECONDS, Progress, find_room, tune
from core.recipes.check import check_by_recipe


class Tuning(QObject):
    """One tuning at a time.

    Args:
        runs_dir: Where runs and what was found are kept.

    Attributes:
        seconds: For trials and comparison.

    Signals:
        progressed: A `Progress`.
        found: A `Tuned`; also after a stop.
        failed: A `RankdeckError`.
        earlier_found: The `EarlierText` of the newest draft; None where it was never tuned.
    """

    progressed = Signal(object)
    found = Signal(object)
    failed = Signal(object)
    earlier_found = Signal(object)
    _reported = Signal(object)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner, self._runs_dir = runner, runs_dir
        self._own = OperationRunner(self)  # a minute of trials must not hold up what else is to be looked at
        self.seconds = SECONDS
        self._stop: threading.Event | None = None
        self._reported.connect(self.progressed, Qt.ConnectionType.QueuedConnection)

    @property
    def is_going(self) -> bool:
        """Trials are being made."""
        return self._stop is not None

    def start(self, run: ResolvedRun) -> None:
        """Begins; does nothing while one is going on."""
        if self._stop is not None:
            return
        self._stop = stop = threading.Event()
        on_progress: Callable[[Progress], None] = self._reported.emit
        folder, seconds = self._runs_dir, self.seconds

        def work() -> Tuned:
            config, _ = check_by_recipe(run.config, run.recipe, global_batch=run.batch.global_)
            fitted = replace(run, config=config)
            try:
                room = find_room(fitted, folder, on_progress=on_progress, cancelled=stop.is_set)
            except CancelledError:
                return Tuned(fitted, (), is_stopped=True)
            made = tune(fitted, room, seconds=seconds, on_progress=on_progress, cancelled=stop.is_set)
            remember(folder / FILE, made)
            return made

        self._own.run(Operation(work, self._on_found, self._on_failed))

    def stop(self) -> None:
        """Ends the trials; `found` follows once their processes are gone."""
        if self._stop is not None:
            self._stop.set()

    def look_for_earlier(self, run: ResolvedRun | None) -> None:
        """Looks for what was found for such a run before."""
        if run is None or run.recipe.self_contained:
            self.earlier_found.emit(None)
            return
        file = self._runs_dir / FILE

        def work() -> EarlierText | None:
            return earlier_text(earlier_tuning(file, run), time.time())

        self._runner.run(Operation(work, self.earlier_found.emit, lambda _: None, topic="tuned before"))

    def close(self) -> None:
        """Ends the trials and waits a bounded time for their processes."""
        self.stop()
        self._own.close()

    def _on_found(self, made: Tuned) -> None:
        self._stop = None
        self.found.emit(made)

    def _on_failed(self, error: RankdeckError) -> None:
        self._stop = None
        self.failed.emit(error)
