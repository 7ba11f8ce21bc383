"""`metrics.jsonl` line by line, as far as it was whole when reading began: a live run's file grows meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from core.errors import RankdeckError
from core.files.atomic import explained
from core.held_files import open_binary
from core.metrics.metrics_file import LONGEST_LINE_BYTES, whole_bytes

Line = dict[str, Any]
# Told now and then how far it is, 0 to 1.
Progress = Callable[[float], None]
_TELL_EVERY: Final = 4096


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
        if not self._end:
            return
        with explained(f"{self._path} could not be read"), open_binary(self._path, buffering=1 << 20) as file:
            yield from self._lines(iter(lambda: file.readline(LONGEST_LINE_BYTES), b""), progress)

    def _lines(self, file: Iterator[bytes], progress: Progress) -> Iterator[Line]:
        position = 0
        for number, text in enumerate(file):
            position += len(text)
            if position > self._end:
                return
            if number % _TELL_EVERY == 0:
                progress(position / self._end)
                if self._cancelled():
                    raise ExportCancelledError("The export was cancelled.", "Nothing was written.")
            try:
                line = orjson.loads(text)
            except orjson.JSONDecodeError:
                self.damaged += 1
                continue
            if isinstance(line, dict) and isinstance(line.get("event"), str):
                yield line
            else:
                self.damaged += 1
