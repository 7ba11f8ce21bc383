"""A job's log, read line by line as it grows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.held_files import open_binary

_MOST_BYTES: Final = 1 << 20
"""Of one reading; the rest comes with the next."""
_LONGEST: Final = 4_000


class JobLog:
    """The whole lines of a file that another machine may be writing.

    Args:
        path: The file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self) -> list[str]:
        """The lines since the last call; none where the file cannot be read just now."""
        try:
            with open_binary(self._path, timeout_s=0.0) as file:
                file.seek(self._offset)
                data = file.read(_MOST_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:  # a progress line without an end
            lines, self._rest = [*lines, self._rest], b""
        return [
            line.rpartition(b"\r")[2].decode("utf-8", errors="replace")[:_LONGEST] for line in lines if line.strip()
        ]
