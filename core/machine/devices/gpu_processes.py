"""Names of the processes that compute on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from core.machine.process_reading import program_name


class ProcessNames:
    """Names of programs by pid. A process is asked once: its name does not change, and asking costs a little."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def read(self, pids: Sequence[int]) -> dict[int, str]:
        """The names of these processes; empty for one that has ended or cannot be seen. Others are forgotten."""
        self._known = {pid: self._known.get(pid) or program_name(pid) for pid in pids}
        return dict(self._known)
