"""Mailboxes, the only crossing between threads: workers put things in a mailbox, the GUI thread gets them in batches.

Nothing else in the window runs on two threads: what is put into a mailbox belongs to the receiver from then on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal

DRAIN_INTERVAL_MS: Final = 50
DRAIN_BUDGET_S: Final = 0.012
CAPACITY: Final = 64
JOIN_TIMEOUT_S: Final = 3.0
Send = Callable[[Any], bool]
_log = logging.getLogger(__name__)


class Mailbox(QObject):
    """Takes items from any thread and delivers them on the GUI thread, at most 20 times a second.

    The first item after a pause is delivered at once; an idle mailbox has no timer running. A slow receiver slows
    the senders down (`put` waits while `CAPACITY` items lie there), so memory stays bounded and nothing is lost.

    Signals:
        delivered: A list of items in the order they were put. Handling should take about 10 ms at most: after
            `DRAIN_BUDGET_S` the rest waits for the next round, so that the window stays responsive.
        drained: One round of deliveries is over: the moment to redraw once.
    """

    delivered = Signal(object)
    drained = Signal()
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._items: deque[Any] = deque()
        self._lock = threading.Condition()
        self._closed = False
        self._awake = False
        self._last_drain = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._on_timeout)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)

    def put(self, item: Any, timeout_s: float = 0.25) -> bool:
        """Puts an item in, from any thread but the receiver's; False when the mailbox is closed or stays full."""
        with self._lock:
            if not self._lock.wait_for(lambda: self._closed or len(self._items) < CAPACITY, timeout_s) or self._closed:
                return False
            self._items.append(item)
            if not self._awake:
                self._awake = True
                # Under the lock: `close` cannot take the object away in between.
                self._woken.emit()
            return True

    def close(self) -> None:
        """Drops all items, delivers nothing any more and lets waiting senders go."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._lock.notify_all()
        self._timer.stop()

    def _on_woken(self) -> None:
        rest_s = DRAIN_INTERVAL_MS / 1000 - (time.monotonic() - self._last_drain)
        self._timer.start(max(0, round(rest_s * 1000)))

    def _on_timeout(self) -> None:
        start = time.monotonic()
        delivered = False
        while time.monotonic() - start < DRAIN_BUDGET_S:
            with self._lock:
                if not self._items:
                    break
                item = self._items.popleft()
                self._lock.notify()
            self.delivered.emit(item)
            delivered = True
        self._last_drain = time.monotonic()
        if delivered:
            self.drained.emit()
        with self._lock:
            self._awake = bool(self._items) and not self._closed
            again = self._awake
        if again:
            self._timer.start(DRAIN_INTERVAL_MS // 5)


class Worker(threading.Thread):
    """A thread of the window: runs `work(stopping)` until it returns, and is asked to end by `stop`.

    Args:
        name: Shown in logs.
        work: Gets an event that is set when it should come to an end; it looks at it at least every second.
    """

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        # A hung driver call must not keep a closed window alive.
        super().__init__(name=name, daemon=True)
        self.stopping = threading.Event()
        self._work = work

    def run(self) -> None:
        try:
            self._work(self.stopping)
        except Exception:
            _log.exception("the thread %s ended by an error", self.name)

    def stop(self, timeout_s: float = JOIN_TIMEOUT_S) -> bool:
        """Asks the thread to end and waits a bounded time; False if it still runs."""
        self.stopping.set()
        if self.is_alive():
            self.join(timeout_s)
        if self.is_alive():
            _log.warning("the thread %s did not end within %.0f s", self.name, timeout_s)
            return False
        return True


class Feed(QObject):
    """Base of data that a thread fills and the window shows: a worker on one side, `_on_item` on the GUI thread.

    Its owner calls `close` before it drops it.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._mailbox: Mailbox | None = None
        self._worker: Worker | None = None
        self._leaving: list[Worker] = []

    @property
    def is_open(self) -> bool:
        return self._worker is not None

    def close(self, *, wait: bool = True) -> None:
        """Ends the worker; nothing is delivered any more. A second call does nothing.

        Args:
            wait: Returns once every worker has ended, within a bounded time. While the window is in use, do not wait
                for a worker that reads from a slow disk or host: it then ends by itself, and the last `close` waits.
        """
        if self._worker is not None and self._mailbox is not None:
            self._worker.stopping.set()
            self._mailbox.close()
            self._mailbox.deleteLater()
            self._leaving.append(self._worker)
            self._worker = self._mailbox = None
        if wait:
            for worker in self._leaving:
                worker.stop()
        self._leaving = [worker for worker in self._leaving if worker.is_alive() and not wait]

    def _start(self, name: str, work: Callable[[threading.Event, Send], None]) -> None:
        """Runs `work(stopping, send)` in a new thread, after asking the one before to end."""
        Feed.close(self, wait=False)
        mailbox = Mailbox(self)
        mailbox.delivered.connect(self._on_item)
        mailbox.drained.connect(self._on_drained)
        self._mailbox = mailbox
        self._worker = Worker(name, lambda stopping: work(stopping, mailbox.put))
        self._worker.start()

    def _on_item(self, item: object) -> None:
        """Takes an item that arrived."""

    def _on_drained(self) -> None:
        """Acts after a round of items."""
