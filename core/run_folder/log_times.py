"""Times of a log: when it had grown to which size. What a process prints has no time of its own."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.files.links import append_unlinked
from core.held_files import open_binary

# Of a long file only the end is read: a week of a log that grows every second has 12 MiB.
READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogTimes:
    sizes: Sequence[int] = ()
    times: Sequence[float] = ()

    def of(self, end: int) -> float | None:
        """The time at which the line that ends at a byte was there; None where that is not known."""
        place = bisect.bisect_left(self.sizes, end)
        return self.times[place] if 0 < place < len(self.times) else None


def times_file(log: Path) -> Path:
    return log.with_suffix(".times")


def note_size(log: Path, size: int, ts: float) -> None:
    """Add a size and its time, `<Unix seconds> <bytes>`; raises `LinkError`, OSError."""
    with append_unlinked(times_file(log)) as file:
        file.write(f"{ts:.2f} {size}\n".encode())


def read_log_times(log: Path) -> LogTimes:
    """Read the newest times of a log; none without such a file, as in runs of early versions."""
    try:
        with open_binary(times_file(log)) as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - READ_BYTES))
            lines = file.read(READ_BYTES).split(b"\n")[1 if end > READ_BYTES else 0 : -1]
    except OSError:
        return LogTimes()
    sizes: list[int] = []
    times: list[float] = []
    for line in lines:
        try:
            ts, size = float(line.split()[0]), int(line.split()[1])
        except (ValueError, IndexError):
            continue
        if not math.isfinite(ts):
            continue
        if sizes and size < sizes[-1]:  # the log began again
            sizes, times = [], []
        sizes.append(size)
        times.append(ts)
    return LogTimes(sizes, times)
