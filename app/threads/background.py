"""Work that would hold up the window: runs in the background, its result arrives on the GUI thread."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from PySide6.QtCore import QObject, Qt, QThreadPool, Signal

from core.errors import RankdeckError

T = TypeVar("T")
_log = logging.getLogger(__name__)
_WORKERS: Final = 3
CLOSE_WAIT_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """One piece of background work and what to do with its outcome.

    Attributes:
        work: Runs in a worker thread; must not touch widgets.
        on_success: Gets the result, on the GUI thread.
        on_failure: Gets the error, on the GUI thread.
        topic: A newer operation of the same topic makes this one's outcome stale: it is dropped. Empty: never stale.
    """

    work: Callable[[], T]
    on_success: Callable[[T], None]
    on_failure: Callable[[RankdeckError], None]
    topic: str = ""


class OperationRunner(QObject):
    """Runs `Operation`s in a few threads of its own; `close()` ends it and drops what is still on its way.

    The outcome crosses threads as a queued signal, so callbacks only ever run on the thread this object lives in.
    """

    _ended = Signal(int, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(_WORKERS)
        self._numbers = itertools.count(1)
        self._open: dict[int, Operation[Any]] = {}
        self._latest: dict[str, int] = {}
        self._closed = False
        self._ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)

    def run(self, operation: Operation[T]) -> None:
        """Starts `operation`; returns at once. Does nothing after `close()`."""
        if self._closed:
            return
        number = next(self._numbers)
        self._open[number] = operation
        if operation.topic:
            self._latest[operation.topic] = number
        self._pool.start(lambda: self._work(number, operation.work))

    def close(self) -> None:
        """Waits a bounded time for running work, and delivers no more results."""
        self._closed = True
        self._open.clear()
        self._pool.clear()
        if not self._pool.waitForDone(CLOSE_WAIT_MS):
            _log.warning("background work was still running %d ms after the window was closed", CLOSE_WAIT_MS)

    def _work(self, number: int, work: Callable[[], object]) -> None:
        """Runs in the worker's thread; the receiver may be gone if the work outlives `close`."""
        result, error = None, None
        try:
            result = work()
        except RankdeckError as wrong:
            error = wrong
        except Exception as wrong:
            # A defect of ours: the person gets one message, the log the traceback; the window continues.
            _log.exception("background work failed")
            error = unexpected(wrong)
        try:
            self._ended.emit(number, result, error)
        except RuntimeError:  # Qt has deleted what it would be sent from
            if not self._closed:
                raise

    def _on_ended(self, number: int, result: object, error: object) -> None:
        operation = self._open.pop(number, None)
        if operation is None or (operation.topic and self._latest.get(operation.topic) != number):
            return
        if isinstance(error, RankdeckError):
            operation.on_failure(error)
        else:
            operation.on_success(result)


def unexpected(error: BaseException) -> RankdeckError:
    return RankdeckError(
        f"{type(error).__name__}: {error}.",
        "Try again. If it happens again, please report it with the text in the terminal.",
        title="Something went wrong unexpectedly",
    )
