"""Process state: the system's view of a process that does not answer, and its stacks if py-spy is installed."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from core.program_search import NO_WINDOW, find_program

PY_SPY_LIMIT_S: Final = 15.0
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


def py_spy_stacks(pid: int) -> str:
    """Read the stacks of a process's threads by ``py-spy dump``; empty where it is missing or not allowed."""
    beside = Path(sys.executable).with_name("py-spy.exe" if sys.platform == "win32" else "py-spy")
    program = str(beside) if beside.exists() else find_program("py-spy")
    if program is None:
        return ""
    # Not suspended while it is read: py-spy cannot suspend what is suspended already, and what hangs does not move.
    argv = [program, "dump", "--nonblocking", "--pid", str(pid)]
    try:
        found = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PY_SPY_LIMIT_S, check=False,
            creationflags=NO_WINDOW,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.decode("utf-8", errors="replace") if found.returncode == 0 else ""


def _text(process: psutil.Process, share: float, used_s: float) -> str:
    if process.status() == psutil.STATUS_DISK_SLEEP:
        return "waits in the kernel, for a disk or a driver, and cannot be interrupted"
    if share > _BUSY_SHARE:
        return f"computes ({share:.0%} of a core)"
    return f"sleeps, {used_s:.1f} s of processor time used"
