"""Processes that a test has started: those below it with a word in their command, and how one ends."""

from __future__ import annotations

import contextlib
import time

import psutil

from core.processes import Child


def children_with(word: str, pid: int | None = None) -> list[psutil.Process]:
    """Living processes below a process, by default this one, whose command line holds a word."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):  # one has just ended; Windows has several ways to say so
            if word in " ".join(child.cmdline()):
                found.append(child)
    return found


def exit_code(child: Child, limit_s: float = 30.0) -> int | None:
    """How it ended; None when it still runs after so long."""
    deadline = time.monotonic() + limit_s
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return child.poll()
