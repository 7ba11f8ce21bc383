"""Names of the processes that compute on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import psutil


class ProcessNames:
    """Names of programs by pid. A process is asked once: its name does not change, and asking costs a little."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def read(self, pids: Sequence[int]) -> dict[int, str]:
        """The names of these processes; empty for one that has ended or cannot be seen. Others are forgotten."""
        self._known = {pid: self._known.get(pid) or _name(pid) for pid in pids}
        return dict(self._known)


def _name(pid: int) -> str:
    try:
        return plain_name(psutil.Process(pid).name())
    except (psutil.Error, OSError, ValueError, OverflowError):
        return ""


def plain_name(program: str) -> str:
    """A program's name as a person says it: ``python`` for python3.12 and python.exe."""
    name = program.strip()
    if name.lower().endswith(".exe"):
        name = name[:-4]
    beginning = name.rstrip("0123456789.")
    return beginning if beginning.lower() in ("python", "pythonw") else name
