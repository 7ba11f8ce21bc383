"""Stop ladder: ask ranks to stop → one deadline for all → end the process tree, and name surviving processes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# What ending a tree may take: a quarter for processes to end on request (SIGTERM), the rest for killed ones.
KILL_WAIT_S: Final = 8.0


class Rung(IntEnum):
    """The stage of a stop, which only ever rises."""

    NONE = 0
    ASKED = 1
    END = 2


class StopLadder:
    """One stop of one run. Pure: the caller brings the time (seconds on a monotonic clock) and does the work.

    Args:
        timeout_s: From the request until the ranks are ended without a commit; all ranks share it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._end_at: float | None = None
        self.is_hurried = False

    @property
    def is_asked(self) -> bool:
        return self._end_at is not None

    def ask(self, now: float) -> None:
        """Request a stop at the next step boundary. A second request never moves the deadline."""
        if self._end_at is None:
            self._end_at = now + self._timeout_s

    def hurry(self, now: float) -> None:
        self.is_hurried = True
        self._end_at = now if self._end_at is None else min(now, self._end_at)

    def set_timeout(self, timeout_s: float, now: float) -> None:
        self._timeout_s = timeout_s
        if self.is_asked and not self.is_hurried:
            self._end_at = now + timeout_s

    def rung(self, now: float) -> Rung:
        if self._end_at is None:
            return Rung.NONE
        return Rung.ASKED if now < self._end_at else Rung.END
