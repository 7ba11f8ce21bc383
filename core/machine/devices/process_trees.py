"""CPU use and memory of processes together with all their children."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Final

import psutil

from core.machine.process_reading import UNREADABLE, descendants

# A scan for new members asks about every process of the machine, so it may take 1 / `_SCAN_SHARE` of the time.
_SCAN_SHARE: Final = 50.0
_SCAN_EVERY_S: Final = 0.5


class ProcessTrees:
    """The trees of some processes, one for each key. Not for several threads at once.

    Args:
        roots: Key → pid of the process that the tree begins with; one that is not there is left out.
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots: dict[str, psutil.Process] = {}
        self._members: dict[str, dict[int, psutil.Process]] = {}
        for key, pid in roots.items():
            with contextlib.suppress(*UNREADABLE):
                self._roots[key] = psutil.Process(pid)
                self._roots[key].cpu_percent()  # from now on
                self._members[key] = {}
        self._next_scan = 0.0
        self._find_members()

    @property
    def keys(self) -> list[str]:
        return list(self._roots)

    def read(self, key: str) -> tuple[float, int]:
        """Percent of one core that a tree used since the last reading, and its resident bytes.

        Memory that forked processes share counts once for each of them, as in `top`.

        Raises:
            psutil.Error: The tree's first process has ended.
        """
        self._find_members()
        busy, used = _figures(self._roots[key])
        members = self._members[key]
        for pid, process in list(members.items()):
            try:
                figures = _figures(process)
            except psutil.Error:  # ended, or its pid is another's by now
                del members[pid]
                continue
            busy, used = busy + figures[0], used + figures[1]
        return busy, used

    def _find_members(self) -> None:
        """Add processes started since the last scan. A member stays one after its parent has ended."""
        began = time.monotonic()
        if began < self._next_scan:
            return
        for key, root in self._roots.items():
            members = self._members[key]
            for process in descendants(root):
                if members.get(process.pid) != process:
                    with contextlib.suppress(*UNREADABLE):
                        process.cpu_percent()
                        members[process.pid] = process
        now = time.monotonic()
        self._next_scan = now + max(_SCAN_EVERY_S, _SCAN_SHARE * (now - began))


def _figures(process: psutil.Process) -> tuple[float, int]:
    if not process.is_running():
        raise psutil.NoSuchProcess(process.pid)
    with process.oneshot():
        return process.cpu_percent(), int(process.memory_info().rss)
