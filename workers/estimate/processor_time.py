"""Processor time that a piece of work takes, also where the system counts it in coarse ticks."""

from __future__ import annotations

import sys
import time
from typing import Final

TICK_S: Final = 1 / 64 if sys.platform == "win32" else 0.0
"""Windows charges a whole tick of its clock to the process that computes as it ticks: work of a few milliseconds counts
as one, or as nothing. Elsewhere processor time is exact."""
_LEAST_TICKS: Final = 10


class ProcessorTimer:
    """Times from its making on what this process computes, whatever else computes meanwhile.

    Args:
        threads: How many threads share the work.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._began, self._used_s = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """How long the work would have taken alone; what is too short for the ticks is timed by the wall clock."""
        used_s = time.process_time() - self._used_s
        if used_s < _LEAST_TICKS * TICK_S:
            return time.perf_counter() - self._began
        return used_s / self._threads
