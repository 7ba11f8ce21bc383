"""Curves and sizes of the listed runs, read by a thread of its own: curves of rows in sight first, sizes last."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from PySide6.QtCore import QObject, Signal

from app.runs.run_row import NO_CURVE, RunRow, is_live
from app.threads.bridge import Feed, Send
from core.metrics.curve import MetricCurve, read_curve
from core.run_folder.removal import folder_bytes
from core.run_folder.store import RunStore

# The first picture of the shown run comes first.
START_AFTER_S: Final = 0.6
BATCH_S: Final = 0.3
# Between two folders, so that counting a thousand of them does not take a whole core.
PAUSE_S: Final = 0.002
LIVE_RECOUNT_S: Final = 30.0
# Sizes of runs that have ended change too, by exports.
RECOUNT_S: Final = 600.0
# Changes when a run's host wrote something.
Version: TypeAlias = tuple[float, int, str]


@dataclass(frozen=True, slots=True)
class CurveRead:
    """A run's curve as it was at a version."""

    path: Path
    version: Version
    curve: MetricCurve


def version_of(row: RunRow) -> Version:
    """The version of a run's metrics, as far as its state says it."""
    state = row.entry.state
    return (0.0, 0, "") if state is None else (state.updated, state.attempt, state.state)


class RunDetails(Feed):
    """Reads what rows show beside their state.

    Signals:
        curve_read: A `CurveRead`.
        sizes_counted: The sizes of some folders in bytes, by path.
    """

    curve_read = Signal(object)
    sizes_counted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._changed = threading.Condition()
        self._wanted: OrderedDict[Path, RunRow] = OrderedDict()
        self._runs: dict[Path, RunRow] = {}
        self._wants_all = False
        self._read: dict[Path, tuple[Version, float]] = {}
        self._counted: dict[Path, tuple[Version, float]] = {}

    def open(self) -> None:

        def work(stopping: threading.Event, send: Send) -> None:
            stopping.wait(START_AFTER_S)
            sizes: dict[Path, int] = {}
            sent_at = time.monotonic()
            while not stopping.is_set():
                row, folder = self._next(stopping)
                if row is not None:
                    with self._changed:
                        self._read[row.path] = (version_of(row), time.monotonic())
                    send(CurveRead(row.path, version_of(row), _read(row)))
                elif folder is not None:
                    sizes[folder] = folder_bytes(folder)
                    stopping.wait(PAUSE_S)
                if sizes and (folder is None or time.monotonic() - sent_at > BATCH_S) and send(sizes):
                    sizes, sent_at = {}, time.monotonic()

        self._start("run details", work)

    def close(self, *, wait: bool = True) -> None:
        if self._worker is not None:
            self._worker.stopping.set()
        with self._changed:
            self._changed.notify_all()
        super().close(wait=wait)

    def want_curve(self, row: RunRow) -> None:
        """Reads a row's curve; the one that was wanted last is the first."""
        with self._changed:
            self._wanted[row.path] = row
            self._wanted.move_to_end(row.path)
            self._changed.notify_all()

    def want_all_curves(self) -> None:
        """Reads the curve of every run whose main metric its state does not say, from now on."""
        with self._changed:
            self._wants_all = True
            self._changed.notify_all()

    def set_runs(self, rows: Iterable[RunRow]) -> None:
        """Counts the sizes of these runs, of each again when it has changed."""
        runs = {row.path: row for row in rows}
        with self._changed:
            self._runs = runs
            self._counted = {path: counted for path, counted in self._counted.items() if path in runs}
            self._read = {path: read for path, read in self._read.items() if path in runs}
            self._changed.notify_all()

    def _next(self, stopping: threading.Event) -> tuple[RunRow | None, Path | None]:
        """The next curve to read, or the next folder to count; neither when there is nothing to do for a second."""
        with self._changed:
            if not self._wanted and (row := self._next_curve()) is not None:
                return row, None
            if not self._wanted and (folder := self._next_folder()) is not None:
                return None, folder
            if not self._wanted and not stopping.is_set():
                self._changed.wait(1.0)
            if self._wanted:
                return self._wanted.popitem()[1], None
            return None, None

    def _next_curve(self) -> RunRow | None:
        """The next run whose curve the order asks for."""
        now = time.monotonic()
        for path, row in self._runs.items() if self._wants_all else ():
            state = row.entry.state
            if row.metric.last(None if state is None else state.loss, NO_CURVE) is None:
                read, at = self._read.get(path, (None, 0.0))
                if read is None or (read != version_of(row) and _is_due(row, now - at)):
                    return row
        return None

    def _next_folder(self) -> Path | None:
        now = time.monotonic()
        for path, row in self._runs.items():
            version = version_of(row)
            counted, at = self._counted.get(path, (None, 0.0))
            if counted is None or now - at > RECOUNT_S or (counted != version and _is_due(row, now - at)):
                self._counted[path] = (version, now)
                return path
        return None

    def _on_item(self, item: object) -> None:
        if isinstance(item, CurveRead):
            self.curve_read.emit(item)
        elif isinstance(item, Mapping):
            self.sizes_counted.emit(item)


def _is_due(row: RunRow, age_s: float) -> bool:
    return not is_live(row.entry) or age_s > LIVE_RECOUNT_S


def _read(row: RunRow) -> MetricCurve:
    store = RunStore(row.path)
    return read_curve(store.columns, store.metrics, row.metric.names, row.metric.eval_names)
