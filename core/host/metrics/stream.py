"""The way of every metrics line: from ranks and the host itself to the disk, held back when the disk is behind."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import orjson

from core.host.metrics.sink import HIGH_WATER_BYTES, LOW_WATER_BYTES, BackgroundColumns, MetricsSink
from core.host.metrics.status import StatusPublisher
from core.metrics.metrics_file import MetricsWriter
from core.protocol.server import Listener

log = logging.getLogger(__name__)


class MetricsStream:
    """A `MetricsSink` on the event loop: pauses ranks, updates the status, and reports a disk that refuses."""

    def __init__(self, listener: Listener, status: StatusPublisher, attempt: Callable[[], int]) -> None:
        self._listener = listener
        self._status = status
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._sink: MetricsSink | None = None
        self.is_behind = False
        self._trouble: str | None = None

    def open(self, writer: MetricsWriter, columns: BackgroundColumns) -> None:
        self._sink = MetricsSink(writer, columns, self._written_on_thread, self._trouble_on_thread)

    def put(self, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        if self._sink is None:
            return
        self._sink.put(lines, parsed)
        if not self.is_behind and self._sink.pending_bytes > HIGH_WATER_BYTES:
            self.is_behind = True
            self._listener.pause_ranks()
            # All that may have been written before its thread could see the pause.
            self._resume_if_written()

    def emit(self, event: str, **fields: Any) -> None:
        value = {"ts": time.time(), "event": event, "rank": -1, "attempt": self._attempt(), **fields}
        if self._sink is not None:
            self._sink.put([orjson.dumps(value)], [value])

    def emit_from_thread(self, event: str, rows: list[dict[str, Any]]) -> None:
        def emit_all() -> None:
            for fields in rows:
                self.emit(event, **fields)

        self._loop.call_soon_threadsafe(emit_all)

    def settle(self, timeout_s: float) -> bool:
        sink = self._sink
        return sink is None or sink.settle(timeout_s)

    async def close(self, timeout_s: float) -> int:
        if self._sink is None:
            return 0
        sink, self._sink = self._sink, None
        lost = await self._loop.run_in_executor(None, sink.close, timeout_s)
        # Its last word on the file's size has been called into the loop.
        await asyncio.sleep(0)
        return lost

    def _written_on_thread(self, size_bytes: int) -> None:
        # Known first, then told: a client that comes in between finds it. Without one the loop is left to sleep.
        if self._status.appended(size_bytes) or self.is_behind:
            self._loop.call_soon_threadsafe(self._on_written)

    def _trouble_on_thread(self, cause: str | None) -> None:
        self._loop.call_soon_threadsafe(self._on_trouble, cause)

    def _on_written(self) -> None:
        self._status.tell()
        self._resume_if_written()

    def _resume_if_written(self) -> None:
        if self.is_behind and (self._sink is None or self._sink.pending_bytes < LOW_WATER_BYTES):
            self.is_behind = False
            self._listener.resume_ranks()

    def _on_trouble(self, cause: str | None) -> None:
        if cause == self._trouble:
            return
        self._trouble = cause
        if cause is None:
            log.info("the disk takes metrics again")
            self._status.change(phase="", trouble=None)
            return
        log.error("metrics cannot be written: %s", cause)
        trouble = {
            "title": "Metrics cannot be written",
            "cause": cause,
            "next_step": "Free some space. Nothing is lost: the run catches up as soon as there is room.",
        }
        # The alert waits for the very file that cannot be written; clients hear of it now.
        self._status.change(phase=cause, trouble=trouble)
        self.emit("alert", kind="disk", **trouble)
