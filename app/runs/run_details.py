"""Curves of the listed runs, read by a thread of its own: those of rows in sight first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
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
LIVE_AGAIN_S: Final = 30.0
# Changes when a run's host wrote something.
Version: TypeAlias = tuple[float, int, str]


@dataclass(frozen=True, slots=True)
class CurveRead:
    """A run's curve, and its size on the disk, as they were at a version."""

    path: Path
    version: Version
    curve: MetricCurve
    size_bytes: int = 0


def version_of(row: RunRow) -> Version:
    """The version of a run's metrics, as far as its state says it."""
    state = row.entry.state
    return (0.0, 0, "") if state is None else (state.updated, state.attempt, state.state)


class RunDetails(Feed):
    """Reads the curve and the size that a row shows beside its state."""

    curve_read = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._changed = threading.Condition()
        self._wanted: OrderedDict[Path, RunRow] = OrderedDict()
        self._runs: dict[Path, RunRow] = {}
        self._wants_all = False
        self._read: dict[Path, tuple[Version, float]] = {}

    def open(self) -> None:
        def work(stopping: threading.Event, send: Send) -> None:
            stopping.wait(START_AFTER_S)
            while not stopping.is_set():
                row = self._next(stopping)
                if row is not None:
                    with self._changed:
                        self._read[row.path] = (version_of(row), time.monotonic())
                    send(_read(row))

        self._start("run details", work)

    def close(self, *, wait: bool = True) -> None:
        super().close(wait=False)
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
        with self._changed:
            self._wants_all = True
            self._changed.notify_all()

    def set_runs(self, rows: Iterable[RunRow]) -> None:
        runs = {row.path: row for row in rows}
        with self._changed:
            self._runs = runs
            self._read = {path: read for path, read in self._read.items() if path in runs}
            self._changed.notify_all()

    def _next(self, stopping: threading.Event) -> RunRow | None:
        """Return the next run to read; None when there is nothing to do for a second."""
        with self._changed:
            if not self._wanted and (row := self._next_curve()) is not None:
                return row
            if not self._wanted and not stopping.is_set():
                self._changed.wait(1.0)
            return self._wanted.popitem()[1] if self._wanted else None

    def _next_curve(self) -> RunRow | None:
        now = time.monotonic()
        for path, row in self._runs.items() if self._wants_all else ():
            state = row.entry.state
            if row.metric.last(None if state is None else state.loss, NO_CURVE) is None:
                read, at = self._read.get(path, (None, 0.0))
                is_due = not is_live(row.entry) or now - at > LIVE_AGAIN_S
                if read is None or (read != version_of(row) and is_due):
                    return row
        return None

    def _on_item(self, item: object) -> None:
        self.curve_read.emit(item)


def _read(row: RunRow) -> CurveRead:
    store = RunStore(row.path)
    curve = read_curve(store.columns, store.metrics, row.metric.names, row.metric.eval_names)
    return CurveRead(row.path, version_of(row), curve, folder_bytes(row.path))
