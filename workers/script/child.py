"""The user's program as a process: started so that it dies with us, watched, ended with all its children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from core.protocol.messages import Phase

_WINDOW_S: Final = 5.0
# Of one core. Little, because a crowded machine grants little; a hung script's idle threads use far less.
_BUSY_SHARE: Final = 0.05


class LifeSigns:
    """Reports a script alive when no step of it is charted: it prints, or its processes compute.

    A script may be silent for long and be well: it compiles, evaluates, saves. The hang watch is patient with one that
    computes, less so with one that neither prints nor computes. `hang_timeout_s` is the host's limit, if a person has
    set one.
    """

    def __init__(self, pid: int, send: Callable[[Phase], None], hang_timeout_s: float | None) -> None:
        self._pid = pid
        self._send = send
        self._window_s = _WINDOW_S if hang_timeout_s is None else min(_WINDOW_S, hang_timeout_s / 4)
        self._look_at = time.monotonic() + self._window_s
        self._busy = False
        self._used_s: float | None = None

    def look(self, now: float, printed_at: float) -> None:
        """Look, when it is time to; `printed_at` is the time of the last output, on the same monotonic clock."""
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
    """CPU time of a process with all its children."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


_KILL_WAIT_S: Final = 5.0


def ignore_interrupts() -> None:
    """Let this process outlive the Ctrl+C that it sends; its children must hear it. Called first thing.

    Under Windows a process started in a new process group, as the run host is, ignores Ctrl+C, and so do its children,
    until that is changed.
    """
    signal.signal(signal.SIGINT, _pass_over)
    if sys.platform == "win32":
        import ctypes

        signal.signal(signal.SIGBREAK, _pass_over)
        ctypes.WinDLL("kernel32").SetConsoleCtrlHandler(None, False)


def _pass_over(number: int, frame: object) -> None:
    """A handler rather than SIG_IGN, which a started program would inherit."""


class Script(subprocess.Popen[bytes]):
    """A running program. It writes to this process's output, so its log holds all from the first byte.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        command = list(argv)
        if sys.platform != "win32":
            from core.processes.posix import LAUNCHER

            # The launcher asks for the death signal and becomes the program. In our session: so the run host, which
            # owns that, also owns whatever the program starts and leaves behind.
            command = [*LAUNCHER, "exec", str(os.getpid()), *command]
        # Its own: a program that signals its group means itself.
        group = None if sys.platform == "win32" else 0
        super().__init__(command, stdin=subprocess.DEVNULL, cwd=folder, env=dict(env), process_group=group)

    def interrupt(self, terminate: bool = False) -> None:
        """Send Ctrl+C to its process group, as a terminal does; or, with `terminate`, SIGTERM (Windows: Ctrl+Break).

        SIGTERM reaches the main process alone, as from torchrun: its data loaders' workers would die of it while it
        saves.
        """
        if self.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                # Each rank has a console of its own, never shown: only its processes hear this.
                event = signal.CTRL_BREAK_EVENT if terminate else signal.CTRL_C_EVENT
                os.kill(0, event)
            elif terminate:
                self.send_signal(signal.SIGTERM)
            else:
                # Not reaped yet, so the number is still its group's.
                os.killpg(self.pid, signal.SIGINT)

    def end(self) -> None:
        """End it and its children, without asking. The run host ends any that escape, with the attempt."""
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            children = psutil.Process(self.pid).children(recursive=True)
        self.kill()  # first, since it may start them again
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(_KILL_WAIT_S)
