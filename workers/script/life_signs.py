"""Tells the host that a script is alive when no step of it is charted: it prints, or its processes compute.

A script may be silent for long and be well: it compiles, evaluates, saves. The host's hang watch
(`core.host.watches.hang_watch`) is patient with one that computes, less so with one that neither prints nor computes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

import psutil

from core.protocol.messages import Phase

_WINDOW_S: Final = 5.0
_BUSY_SHARE: Final = 0.05
"""Of one core. Little, because a crowded machine grants little; a hung script's idle threads use far less."""


class LifeSigns:
    """Watches one script, whose main process is `pid`, from its wrapper's loop.

    `hang_timeout_s`: when the host reports a hang, if a person has said so.
    """

    def __init__(self, pid: int, send: Callable[[Phase], None], hang_timeout_s: float | None) -> None:
        self._pid = pid
        self._send = send
        self._window_s = _WINDOW_S if hang_timeout_s is None else min(_WINDOW_S, hang_timeout_s / 4)
        self._look_at = time.monotonic() + self._window_s
        self._busy = False
        self._used_s: float | None = None

    def look(self, now: float, printed_at: float) -> None:
        """Looks, when it is time to; `printed_at`: when the script printed last, on the same monotonic clock."""
        if now < self._look_at:
            return
        if printed_at > self._look_at - self._window_s:
            self._tell(busy=False)
            self._used_s = None
        else:
            used_s = _cpu_seconds(self._pid)
            if self._used_s is not None:
                busy = used_s - self._used_s > _BUSY_SHARE * self._window_s
                if busy != self._busy:
                    self._tell(busy=busy)
            self._used_s = used_s
        self._look_at = now + self._window_s

    def _tell(self, *, busy: bool) -> None:
        self._busy = busy
        self._send(Phase("computing" if busy else "running"))


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process with all that it has started."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total
