"""Run marks: a variable in the environment of every process of a tree, by which those that left it are found.

A process may leave its session (`setsid`) and lose its parent; it keeps the environment it was started with. Linux
shows that in ``/proc/PID/environ`` (proc_pid_environ(5)) to the same user. Windows has Job Objects, which nothing
leaves; there a mark is set and never looked for. A process that overwrites its own environment is not found.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Final

import psutil

from core.processes.identity import ProcessId, identify, is_alive
from core.protocol.rank_context import ENV_RUN_MARK

_POLL_S: Final = 0.02


def folder_mark(run_dir: Path) -> str:
    """The beginning of the marks of all attempts of the run in this folder."""
    folder = os.path.realpath(run_dir)
    return f"{Path(folder).name}:{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}:"


def new_mark(prefix: str = "") -> str:
    return prefix + secrets.token_hex(8)


def find_marked(prefix: str) -> dict[ProcessId, str]:
    """Find living processes of this user whose mark begins with `prefix`, and their marks; Linux only."""
    if sys.platform != "linux":
        return {}
    found: dict[ProcessId, str] = {}
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        mark = read_mark(pid)
        if mark.startswith(prefix) and mark and pid != os.getpid():
            process = identify(pid)
            # Read once more: the pid may have gone to another process between the two looks.
            if process is not None and read_mark(pid) == mark and is_alive(process):
                found[process] = mark
    return found


def read_mark(pid: int) -> str:
    """A process's mark; empty where it has none, is gone, or belongs to another user."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    name = ENV_RUN_MARK.encode() + b"="
    return next((os.fsdecode(item[len(name) :]) for item in variables if item.startswith(name)), "")


def end_marked(prefix: str, limit_s: float = 5.0) -> tuple[list[int], list[int]]:
    """End every process whose mark begins with `prefix`, and those that they start meanwhile.

    Returns:
        Pids that were ended, and pids that would not die within the limit.
    """
    deadline = time.monotonic() + limit_s
    seen: set[ProcessId] = set()
    while living := set(find_marked(prefix)):
        seen |= living
        if time.monotonic() >= deadline:
            break
        for process in living:
            if is_alive(process):
                with contextlib.suppress(psutil.Error):  # it has just ended
                    psutil.Process(process.pid).kill()
        time.sleep(_POLL_S)
    left = {process for process in seen if is_alive(process)}
    return sorted(p.pid for p in seen - left), sorted(p.pid for p in left)
