"""One run for the window: opens it, follows it, and says once a batch what changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge import Feed
from app.run_data import run_follower
from app.run_data.metrics_batch import Event, MetricsBatch
from app.run_data.run_follower import CaughtUp, Kept, OldEvents, Opened, Problem, Progress, RunFollower
from app.run_data.run_series import ChangeSet, RunSeries
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

Connect = Callable[[RunStore, float], run_follower.Connection]


class RunData(Feed):
    """The run that is shown. A thread reads it; everything here happens on the GUI thread.

    Args:
        connect: How to reach a live run's host (`core.client.connect`); None follows the file alone.

    Signals:
        reset: Another run, or the same one from its beginning: `series` is a new object.
        changed: A `ChangeSet`, once a batch and at most about 20 times a second.
        status_changed: The new `RunState`.
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
        self.series = RunSeries()
        self.state: RunState | None = None
        self.run_dir: Path | None = None
        self.is_caught_up = False
        self._connect = connect
        self._change = ChangeSet()

    def open(self, run_dir: Path) -> None:
        """Shows the run in a folder; what was shown before is closed.

        Raises:
            RunNotFoundError: There is no folder, or it holds no run.
        """
        store = RunStore.open(run_dir)
        self.close(wait=False)
        self.run_dir = store.dir
        connect = self._connect
        self._start("run follower", lambda stopping, send: RunFollower(store, send, connect, stopping).run())

    def close(self, *, wait: bool = True) -> None:
        """Ends reading; `series` is empty afterwards."""
        was_open = self.is_open
        super().close(wait=wait)
        if not was_open:
            return
        self.series, self.state, self.run_dir, self.is_caught_up = RunSeries(), None, None, False
        self._change = ChangeSet()
        self.reset.emit()

    @property
    def samples(self) -> list[Event]:
        """Texts that the model wrote, oldest first (`sample` events)."""
        return self.series.events_of("sample")

    def _on_item(self, item: object) -> None:
        if isinstance(item, MetricsBatch):
            self._change |= self.series.apply(item)
        elif isinstance(item, RunState):
            self.state = item
            self.status_changed.emit(item)
        elif isinstance(item, Opened):
            self.series, self._change, self.is_caught_up = item.series, ChangeSet(), False
            self.reset.emit()
            self._change |= ChangeSet(frozenset(item.series.groups))
        elif isinstance(item, OldEvents):
            self.series.add_events_before(item.events)
            self._change |= ChangeSet(events=tuple(item.events))
        elif isinstance(item, Kept):
            self.series.adopt(item.folder, item.index)
        elif isinstance(item, CaughtUp):
            self.is_caught_up = True
            self._change |= ChangeSet(caught_up=True)
        elif isinstance(item, Progress):
            self.progress_changed.emit(item.text, item.done)
        elif isinstance(item, Problem):
            self.failed.emit(item.error)

    def _on_drained(self) -> None:
        change, self._change = self._change, ChangeSet()
        if change:
            self.changed.emit(change)
