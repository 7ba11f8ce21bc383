"""Status publisher: keeps `state.json` on disk up to date, and sends `RunStatus` and `Appended` to clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

from core.errors import RankdeckError
from core.protocol.messages import Appended, Message, RunStatus
from core.protocol.server import Connection
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

log = logging.getLogger(__name__)

# Clients hear of a change of state or phase 25 times a second at most.
TICK_S: Final = 0.04
# Of new lines they hear this seldom: a person reads no faster, and each time wakes host and window, beside ranks that
# use every core.
TELL_S: Final = 0.5
# Progress alone is sent to clients once a second; a change of state or phase at the next tick, once it is written.
QUIET_S: Final = 1.0
# Progress alone is written this seldom: an fsync costs more than everything else that a host does.
QUIET_DISK_S: Final = 3.0
# A client with so much unread is told the newest size later: it needs to hear only the last one.
_BEHIND_BYTES: Final = 256 << 10


class StatusPublisher:
    """Holds the `RunState`, writes `state.json` and sends both to clients."""

    def __init__(
        self, store: RunStore, state: RunState, disk: Executor, clients: Callable[[], list[Connection]]
    ) -> None:
        self.state = state
        self._published = state  # what the disk and the clients know
        self._store = store
        self._disk = disk
        self._clients = clients
        self._urgent = True
        self._dirty = True
        self._next_sent = 0.0
        self._next_written = 0.0
        self._size_bytes = 0
        self._sent_bytes = 0
        self._next_told = 0.0
        self._telling: asyncio.TimerHandle | None = None
        self._is_time_to_tell = False
        self.is_failing = False
        self._news = asyncio.Event()

    def change(self, **fields: Any) -> None:
        self.state = self.state.replace(**fields)
        self._urgent = True
        self._news.set()

    def change_phase(self, phase: str) -> None:
        if phase != self.state.phase:
            log.info("phase: %s", phase or "-")
            self.change(phase=phase)

    def progress(self, **fields: Any) -> None:
        self.state = self.state.replace(**fields)
        if not self._dirty:
            self._dirty = True
            self._news.set()

    def appended(self, size_bytes: int) -> bool:
        """Note from any thread that `metrics.jsonl` is whole up to here; True if `tell` must be called, on the loop."""
        self._size_bytes = size_bytes
        return self._telling is None and bool(self._clients())

    def tell(self) -> None:
        if self._telling is None:
            rest_s = max(0.0, self._next_told - time.monotonic())
            self._telling = asyncio.get_running_loop().call_later(rest_s, self._tell_now)

    def _tell_now(self) -> None:
        self._is_time_to_tell = True
        self._news.set()

    def greet(self, client: Connection) -> None:
        client.send(RunStatus(self._published.as_dict()))
        if self._sent_bytes:
            client.send(Appended(self._sent_bytes))
        # While there were no clients, nothing was told.
        self._tell_now()

    async def run(self) -> None:
        """Tick while there is something to publish, until it is cancelled; call `flush` afterwards.

        A host that wakes up for nothing takes from the ranks, which use every core.
        """
        while True:
            self._news.clear()
            await self._tick()
            await asyncio.sleep(TICK_S)
            quiet_s = max(0.0, self._next_due - time.monotonic()) if self._dirty else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(quiet_s):
                    await self._news.wait()

    async def flush(self) -> None:
        self._urgent = True
        await self._tick()

    async def _tick(self) -> None:
        # Not with progress, which has a pace of its own.
        if self._is_time_to_tell or self._urgent:
            self._is_time_to_tell = False
            self._send_size()
        now = time.monotonic()
        if not self._urgent and not (self._dirty and now >= self._next_due):
            return
        write = self._urgent or now >= self._next_written
        self._urgent, self._dirty = False, not write
        self._next_sent = now + QUIET_S
        self.state = self.state.replace(updated=time.time())
        state = self.state
        # First: who hears that a run has stopped, and resumes it at once, reads there that it has.
        if write:
            self._next_written = now + QUIET_DISK_S
            await self._write(state)
        self._published = state
        self._send(RunStatus(state.as_dict()))

    def _send_size(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        # First: `appended` takes it that what it says meanwhile is still told here.
        self._telling = None
        if self._size_bytes != self._sent_bytes:
            self._sent_bytes = self._size_bytes
            self._next_told = time.monotonic() + TELL_S
            self._send(Appended(self._sent_bytes))

    def _send(self, message: Message) -> None:
        for client in self._clients():
            if client.unread_bytes < _BEHIND_BYTES:
                client.send(message)

    @property
    def _next_due(self) -> float:
        """The time at which progress is sent to clients next or, without clients, written."""
        return self._next_sent if self._clients() else self._next_written

    async def _write(self, state: RunState) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._store.write_state, state)
            self.is_failing = False
        except RankdeckError as error:
            self._dirty = True
            self._next_written = time.monotonic() + QUIET_S
            if not self.is_failing:
                log.warning("state.json could not be written: %s", error.cause)
            self.is_failing = True
