"""A job's log, read line by line as it grows; and what it says of why Slurm has queued the job again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.held_files import open_binary

_MOST_BYTES: Final = 1 << 20
"""Of one reading; the rest comes with the next."""
_LONGEST: Final = 4_000
_TAIL_BYTES: Final = 1 << 14
_TAIL_LINES: Final = 20
"""A reason that is farther from the end is that of an earlier time."""
_SAVED: Final = "waits in the queue again"
_MARKS: Final = (
    ("DUE TO NODE FAILURE", "A node failed"),
    ("DUE TO PREEMPTION", "It was preempted"),
    (_SAVED, "The run was to end and has saved a checkpoint"),
)
"""What Slurm and the batch file write into the log before a job is queued again, and what a person reads of it."""


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


def why_again(log: Path) -> str:
    """Why a job was last queued again, as its log says; empty where that says nothing."""
    try:
        with open_binary(log, timeout_s=0.0) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return cause_in(file.read().decode("utf-8", errors="replace"))
    except OSError:
        return ""


def cause_in(text: str) -> str:
    """The last reason in a log's end. Pure."""
    tail = "\n".join(text.splitlines()[-_TAIL_LINES:])
    places = [(tail.rfind(mark), cause) for mark, cause in _MARKS]
    place, cause = max(places)
    return cause if place >= 0 else ""
