"""Waits for a process that a `ProcessTree` started."""

from __future__ import annotations

import time

from core.processes import Child


def exit_code(child: Child, limit_s: float = 30.0) -> int | None:
    """How it ended; None when it still runs after so long."""
    deadline = time.monotonic() + limit_s
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return child.poll()
