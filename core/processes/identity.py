"""Process identity: a pid and the moment the process started, since pids are recycled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Final

import psutil

from core.records import Limits, RecordError, read_record

# The largest that Windows' type holds.
MAX_PID: Final = 2**32 - 1
# The year 3000, until which Windows can tell the local time.
MAX_UNIX_S: Final = 32_503_680_000.0
# Two readings of one start time differ by rounding and by small corrections of the system clock.
_TOLERANCE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process, for good: its pid, which the system gives to another process later, and its start in Unix time."""

    pid: Annotated[int, Limits(1, MAX_PID)]
    started: Annotated[float, Limits(0, MAX_UNIX_S)]

    @classmethod
    def from_json(cls, value: object) -> ProcessId | None:
        """Read `pid` and `started`; None where these cannot be a process's."""
        try:
            return read_record(cls, value)
        except RecordError:
            return None

    def is_same(self, other: ProcessId) -> bool:
        return self.pid == other.pid and abs(self.started - other.started) < _TOLERANCE_S  # so NaN is another


def ancestors(pid: int) -> tuple[ProcessId, ...]:
    """A process and its parents, as far up as can be seen; empty where it has ended."""
    try:
        process = psutil.Process(pid)
        return tuple(ProcessId(one.pid, one.create_time()) for one in (process, *process.parents()))
    except (psutil.Error, OverflowError, ValueError):
        return ()


def own() -> ProcessId:
    return ProcessId(os.getpid(), psutil.Process().create_time())


def identify(pid: int) -> ProcessId | None:
    """Find the process that has this pid now (a zombie still has it)."""
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
    if now is None or not process.is_same(now):
        return False
    try:
        return psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
