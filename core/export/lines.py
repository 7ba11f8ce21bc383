"""`metrics.jsonl` line by line, as far as it was whole when reading began: a live run's file grows meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from core.errors import RankdeckError
from core.metrics.metrics_file import MetricsTail, whole_bytes

Line = dict[str, Any]
# Told now and then how far it is, 0 to 1.
Progress = Callable[[float], None]
_READ_BYTES: Final = 1 << 18


class ExportCancelledError(RankdeckError):
    title = "The export was cancelled"


class MetricsLines:
    """The lines of a run, which can be read any number of times; every time the same ones.

    Attributes:
        damaged: Number of lines in the last pass that are not JSON objects with an event; they are skipped.
    """

    def __init__(self, path: Path, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._path = path
        self._end = whole_bytes(path)
        self._cancelled = cancelled
        self.damaged = 0

    def read(self, progress: Progress = lambda _done: None) -> Iterator[Line]:
        """Yield each line that has an event; raises `ExportCancelledError` and `PreflightError`."""
        self.damaged = 0
        tail = MetricsTail(self._path)
        while tail.offset < self._end:
            progress(tail.offset / self._end)
            if self._cancelled():
                raise ExportCancelledError("The export was cancelled.", "Nothing was written.")
            if not (lines := tail.read(min(_READ_BYTES, self._end - tail.offset))):
                return
            for text in lines:
                try:
                    line = orjson.loads(text)
                except orjson.JSONDecodeError:
                    line = None
                if isinstance(line, dict) and isinstance(line.get("event"), str):
                    yield line
                else:
                    self.damaged += 1
