"""Disk first: a thread that writes metrics lines, and only then says how far the file may be read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.metrics.columns import ColumnsWriter
from core.metrics.metrics_file import MetricsWriter

log = logging.getLogger(__name__)

SYNC_EVERY_S: Final = 1.0
RETRY_S: Final = 1.0
HIGH_WATER_BYTES: Final = 8 << 20
LOW_WATER_BYTES: Final = 1 << 20
_BATCH_BYTES: Final = 4 << 20
# A rebuild of columns that is given up ends well within this time.
COLUMNS_CLOSE_S: Final = 5.0

Batch = tuple[list[bytes], list[dict[str, Any]]]


class MetricsSink:
    """Writes batches in the order they came. A disk that refuses is asked again every second; nothing is lost.

    Callbacks come on the sink's thread: with the file's size after a write, and with a trouble's cause, or None.
    """

    def __init__(
        self,
        writer: MetricsWriter,
        columns: BackgroundColumns,
        on_written: Callable[[int], None],
        on_trouble: Callable[[str | None], None],
    ) -> None:
        self._writer = writer
        self._columns = columns
        self._on_written = on_written
        self._on_trouble = on_trouble
        self._changed = threading.Condition()
        self._queue: list[Batch] = []
        self.pending_bytes = 0
        self._give_up_at: float | None = None
        self._troubled = False
        self._synced = True
        self._taken = self._safe = 0  # batches: put so far, and written and synced
        self._sync_wanted = False
        self._thread = threading.Thread(target=self._run, name="metrics-sink", daemon=True)
        self._thread.start()

    def put(self, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        size = sum(map(len, lines)) + len(lines)
        with self._changed:
            self._queue.append((lines, parsed))
            self.pending_bytes += size
            self._taken += 1
            self._changed.notify_all()

    def settle(self, timeout_s: float) -> bool:
        """Wait until all earlier lines would survive a power cut, off the loop; False when `timeout_s` is over."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            target = self._taken
            while self._safe < target and self._thread.is_alive():
                self._sync_wanted = True
                self._changed.notify_all()
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.5))
            return self._safe >= target

    def close(self, timeout_s: float) -> int:
        """Write the remaining lines, for `timeout_s` at most, and end; return how many could not be written."""
        with self._changed:
            self._give_up_at = time.monotonic() + timeout_s
            self._changed.notify()
        self._thread.join(timeout_s + 10.0)
        with self._changed:
            return sum(len(lines) for lines, _ in self._queue)

    def _run(self) -> None:
        sync_at = time.monotonic() + SYNC_EVERY_S
        while True:
            with self._changed:
                if not self._queue and self._give_up_at is None and not self._sync_wanted:
                    self._changed.wait(None if self._synced else max(0.0, sync_at - time.monotonic()))
                taken = self._take()
                closing = self._give_up_at is not None
            if taken and not self._write(taken):
                break
            if closing and not taken:
                break
            if time.monotonic() >= sync_at or self._sync_wanted:
                self._sync()
                sync_at = time.monotonic() + SYNC_EVERY_S
        self._close_files()

    def _take(self) -> list[Batch]:
        size, count = 0, 0
        for lines, _ in self._queue:
            size += sum(map(len, lines))
            count += 1
            if size > _BATCH_BYTES:
                break
        return self._queue[:count]

    def _write(self, batches: list[Batch]) -> bool:
        """Write until the disk has taken it (True) or closing has run out of patience (False)."""
        lines = [line for batch, _ in batches for line in batch]
        parsed = [value for _, batch in batches for value in batch]
        while True:
            try:
                size = self._writer.append(lines)
                break
            except (RankdeckError, OSError) as error:
                self._report(error.cause if isinstance(error, RankdeckError) else str(error))
            with self._changed:
                if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
                    return False
                self._changed.wait(RETRY_S if self._give_up_at is None else min(RETRY_S, 0.1))
        with self._changed:
            del self._queue[: len(batches)]
            self.pending_bytes -= sum(map(len, lines)) + len(lines)
        self._synced = False
        self._report(None)
        self._columns.append(lines, parsed, size)
        self._on_written(size)
        return True

    def _report(self, trouble: str | None) -> None:
        if trouble is not None or self._troubled:
            self._troubled = trouble is not None
            self._on_trouble(trouble)

    def _sync(self) -> None:
        with self._changed:
            written = self._taken - len(self._queue)
        if not self._synced:
            try:
                self._writer.sync()
            except (RankdeckError, OSError) as error:
                log.warning("the metrics could not be synced: %s", error)
            self._synced = True
            self._columns.flush()
        with self._changed:
            self._safe, self._sync_wanted = written, False
            self._changed.notify_all()

    def _close_files(self) -> None:
        self._sync()
        self._columns.close()
        self._writer.close()


class BackgroundColumns:
    """A `ColumnsWriter` that is opened on a thread of its own: rebuilding stale columns may take a minute.

    Earlier lines lie in `metrics.jsonl`, opened for writing already, from where the writer catches up on them.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._writer: ColumnsWriter | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._open, name="columns-opener", daemon=True)
        self._thread.start()

    def append(self, lines: Sequence[bytes], parsed: Sequence[dict[str, Any]], source_bytes: int) -> None:
        if self._writer is not None:
            self._writer.append(lines, parsed, source_bytes)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """End writing; columns that are not open yet are left to the next host, or to the next reader."""
        self._given_up.set()
        self._thread.join(COLUMNS_CLOSE_S)
        if self._writer is not None:
            self._writer.close()

    def _open(self) -> None:
        try:
            self._writer = ColumnsWriter(self._run_dir, self._given_up)
        except Exception:  # whatever it is: columns are made again from the metrics, and the run continues
            log.exception("the columns could not be opened")
