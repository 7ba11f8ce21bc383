"""File stamp: shows whether a file was replaced since it was read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Stamp(NamedTuple):
    """Values that change whenever a file is replaced or grows.

    Time and size alone miss the second of two replacements within one tick of the system's clock, which takes 16 ms on
    Windows and 4 ms on Linux. Each replacement is a file of its own, with a number of its own.
    """

    number: int
    changed_ns: int
    size: int


def stamp_of(path: Path) -> Stamp | None:
    """Read a file's stamp: while it stays the same, the file need not be read again. None for a missing file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_ino, status.st_mtime_ns, status.st_size)
