"""Process state: the system's view of a process that does not answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import psutil

_STOPPED: Final = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_WATCH_S: Final = 0.5
_BUSY_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process as the system sees it: whether it is suspended, and the end of a sentence: "is stopped"."""

    stopped: bool
    text: str


def is_stopped(pid: int) -> bool:
    """Whether a process is suspended; False where that cannot be seen."""
    try:
        return psutil.Process(pid).status() in _STOPPED
    except (psutil.Error, OSError):
        return False


def look_at(pid: int) -> ProcessState:
    """Watch a process for half a second, and say what it does."""
    try:
        process = psutil.Process(pid)
        before = sum(process.cpu_times()[:2])
        if process.status() in _STOPPED:
            return ProcessState(True, "is stopped: it was sent SIGSTOP, or suspended")
        time.sleep(_WATCH_S)
        used_s = sum(process.cpu_times()[:2])
        return ProcessState(False, _text(process, (used_s - before) / _WATCH_S, used_s))
    except psutil.NoSuchProcess:
        return ProcessState(False, "has ended")
    except (psutil.Error, OSError):
        return ProcessState(False, "could not be looked at")


def program_of(pid: int) -> int:
    """The first child of a wrapper process; its own pid where it has none."""
    try:
        children = psutil.Process(pid).children()
    except (psutil.Error, OSError):
        return pid
    return children[0].pid if children else pid


def _text(process: psutil.Process, share: float, used_s: float) -> str:
    if process.status() == psutil.STATUS_DISK_SLEEP:
        return "waits in the kernel, for a disk or a driver, and cannot be interrupted"
    if share > _BUSY_SHARE:
        return f"computes ({share:.0%} of a core)"
    return f"sleeps, {used_s:.1f} s of processor time used"
