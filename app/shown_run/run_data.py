"""Data of the shown run: opens and follows it, and signals changes once a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.threads.bridge import Feed, Send
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.run_data.metrics_batch import Event
    from app.run_data.run_follower import Connection
    from app.run_data.run_series import ChangeSet, RunSeries

    Connect = Callable[[RunStore, float], Connection]


class RunData(Feed):
    """The run that is shown. A thread reads it; everything here happens on the GUI thread.

    The thread loads NumPy, too: the window opens without it.

    Args:
        connect: How to reach a live run's host (`core.client.connect`); None follows the file alone.

    Signals:
        reset: Another run, or the same one from its beginning: `series` is a new object.
        changed: A `ChangeSet`, once a batch and at most about 20 times a second.
        progress_changed: ``(text, done)`` while a long run is read; done is 0..1, or None; an empty text: over.
        failed: A `RankdeckError`: the run, or a part of it, cannot be read.
    """

    reset = Signal()
    changed = Signal(object)
    status_changed = Signal(object)
    progress_changed = Signal(str, object)
    failed = Signal(object)

    def __init__(self, connect: Connect | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._series: RunSeries | None = None
        self.state: RunState | None = None
        self.run_dir: Path | None = None
        self.is_caught_up = False
        self._connect = connect
        self._change: ChangeSet | None = None

    @property
    def series(self) -> RunSeries:
        """The run's series so far; an empty one if no run is open."""
        if self._series is None:
            from app.run_data.run_series import RunSeries

            self._series = RunSeries()
        return self._series

    def open(self, run_dir: Path) -> None:
        """Shows the run in a folder; raises `RunNotFoundError`."""
        store = RunStore.open(run_dir)
        self.close(wait=False)
        self.run_dir = store.dir
        connect = self._connect

        def work(stopping: threading.Event, send: Send) -> None:
            from app.run_data.long_bins import LongBins

            bins = LongBins.find(store)
            from app.run_data.run_follower import RunFollower  # NumPy comes with it, while a process reads

            RunFollower(store, send, connect, stopping, bins).run()

        self._start("run follower", work)

    def close(self, *, wait: bool = True) -> None:
        was_open = self.is_open
        super().close(wait=wait)
        if not was_open:
            return
        self._series, self.state, self.run_dir, self.is_caught_up = None, None, None, False
        self._change = None
        self.reset.emit()

    @property
    def samples(self) -> list[Event]:
        return self.series.events_of("sample")

    def _on_item(self, item: object) -> None:
        from app.run_data.metrics_batch import MetricsBatch
        from app.run_data.run_follower import CaughtUp, Kept, OldEvents, Opened, Problem, Progress
        from app.run_data.run_series import ChangeSet

        if isinstance(item, MetricsBatch):
            self._add(self.series.apply(item))
        elif isinstance(item, RunState):
            self.state = item
            self.status_changed.emit(item)
        elif isinstance(item, Opened):
            self._series, self._change, self.is_caught_up = item.series, None, False
            self.reset.emit()
            self._add(ChangeSet(frozenset(item.series.groups)))
        elif isinstance(item, OldEvents):
            self.series.add_events_before(item.events)
            self._add(ChangeSet(events=tuple(item.events)))
        elif isinstance(item, Kept):
            self.series.adopt(item.folder, item.index)
        elif isinstance(item, CaughtUp):
            self.is_caught_up = True
            self._add(ChangeSet(caught_up=True))
        elif isinstance(item, Progress):
            self.progress_changed.emit(item.text, item.done)
        elif isinstance(item, Problem):
            self.failed.emit(item.error)

    def _add(self, change: ChangeSet) -> None:
        self._change = change if self._change is None else self._change | change

    def _on_drained(self) -> None:
        change, self._change = self._change, None
        if change:
            self.changed.emit(change)
