"""Process identity: a pid and the moment the process started, since pids are recycled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psutil

MAX_PID: Final = 2**32 - 1
"""The largest that Windows' type holds."""
MAX_UNIX_S: Final = 32_503_680_000.0
"""The year 3000, until which Windows can tell the local time."""
_TOLERANCE_S: Final = 1.0
"""Two readings of one start time differ by rounding and by small corrections of the system clock."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process, for good.

    Attributes:
        pid: Its number, which the system gives to another process later.
        started: Unix time of its start in seconds, as psutil's `create_time`.
    """

    pid: int
    started: float

    @classmethod
    def from_json(cls, value: object) -> ProcessId | None:
        """The process that a file names by `pid` and `started`; None where these cannot be a process's."""
        if not isinstance(value, Mapping):
            return None
        pid, started = value.get("pid"), value.get("started")
        if not isinstance(pid, int) or not isinstance(started, int | float) or isinstance(pid, bool):
            return None
        possible = 0 < pid <= MAX_PID and 0 <= started <= MAX_UNIX_S  # NaN is not
        return cls(pid, float(started)) if possible else None


def own() -> ProcessId:
    """This process."""
    return ProcessId(os.getpid(), psutil.Process().create_time())


def identify(pid: int) -> ProcessId | None:
    """The process that has this pid now, or None when none has (a zombie still has it)."""
    if pid <= 0:
        return None
    try:
        return ProcessId(pid, psutil.Process(pid).create_time())
    except (psutil.NoSuchProcess, psutil.AccessDenied, OverflowError):
        # Our own processes can always be read: one that refuses belongs to another user, under a recycled pid.
        return None


def is_alive(process: ProcessId) -> bool:
    """Whether that very process still runs. A zombie (ended, not yet reaped by its parent) does not."""
    now = identify(process.pid)
    if now is None or not abs(now.started - process.started) < _TOLERANCE_S:  # so NaN is another process
        return False
    try:
        return psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
