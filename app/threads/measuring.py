"""A measurement that takes minutes: its work in a thread of its own, how far it is, and a stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError

Tell = Callable[[Any], None]
Cancelled = Callable[[], bool]


class Measuring(QObject):
    """One measurement at a time; it must not hold up other work.

    Signals:
        progressed: What the work tells.
        found: What it returns, also after a stop.
        failed: A `RankdeckError`.
    """

    progressed = Signal(object)
    found = Signal(object)
    failed = Signal(object)
    _reported = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = OperationRunner(self)
        self._stop: threading.Event | None = None
        self._reported.connect(self.progressed, Qt.ConnectionType.QueuedConnection)  # from the worker thread

    @property
    def is_going(self) -> bool:
        return self._stop is not None

    def start(self, work: Callable[[Tell, Cancelled], object]) -> None:
        """Begins, unless one is going on. `work` gets a function for its progress, and one that says when to end."""
        if self._stop is not None:
            return
        self._stop = stop = threading.Event()
        tell: Tell = self._reported.emit
        self._runner.run(Operation(lambda: work(tell, stop.is_set), self._on_found, self._on_failed))

    def stop(self) -> None:
        """Ends it; `found` follows once its processes are gone."""
        if self._stop is not None:
            self._stop.set()

    def close(self) -> None:
        """Ends it and waits a bounded time for its processes."""
        self.stop()
        self._runner.close()

    def _on_found(self, found: object) -> None:
        self._stop = None
        self.found.emit(found)

    def _on_failed(self, error: RankdeckError) -> None:
        self._stop = None
        self.failed.emit(error)
