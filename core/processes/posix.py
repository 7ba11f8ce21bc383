"""Process rules of POSIX: a session for each child, a death signal (Linux), and a watcher process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import psutil

from core.processes.identity import ProcessId, identify, is_alive
from core.processes.marks import find_marked

assert sys.platform != "win32"  # tells mypy what the rest is for

# Starts a process from its arguments, environment, working directory and log's descriptor.
Starter: TypeAlias = Callable[[Sequence[str], Mapping[str, str], Path, int], subprocess.Popen[bytes]]
LAUNCHER: Final = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py")))


class SessionRules:
    """Starts and ends the processes of a `core.processes.tree.ProcessTree` in sessions.

    A session holds a child and its children, also when process groups are made in it. A process that calls `setsid`
    leaves it, and is found as long as its parent lives, and under Linux by its mark (`marks`).

    Args:
        mark: Stands in the environment of every child.
        starter: Starts a child in a session of its own. None takes the launcher, which ties it to this process.
    """

    def __init__(self, mark: str, starter: Starter | None = None) -> None:
        self._mark = mark
        self._starter = starter or self._launch
        self._used = False
        # Linux sends the parent-death signal when the forking *thread* ends, so one thread forks for all and
        # lives as long as the tree does.
        self._forker = ThreadPoolExecutor(1, thread_name_prefix="rankdeck-forker")
        self._sessions: set[int] = set()
        self._watcher: subprocess.Popen[bytes] | None = None

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        """Start a process that cannot outlive this one, its output going to `log_fd`; raises `OSError`."""
        self._used = True
        return self._forker.submit(self._start, argv, env, cwd, log_fd).result()

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        child = self._starter(argv, env, cwd, log_fd)
        self._sessions.add(child.pid)
        self._tell_watcher(f"+{child.pid}\n")
        return child

    def _launch(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        if self._watcher is None:
            self._watcher = subprocess.Popen(
                [*LAUNCHER, "watch", self._mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                start_new_session=True,
            )
        return subprocess.Popen(
            [*LAUNCHER, "exec", str(os.getpid()), *argv],
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )

    def members(self) -> list[ProcessId]:
        if not self._used:
            return []
        parents: dict[int, int | None] = {}
        members = {process.pid for process in find_marked(self._mark)}
        for process in psutil.process_iter(["ppid"]):
            parents[process.pid] = process.info["ppid"]
            with contextlib.suppress(OSError):
                if os.getsid(process.pid) in self._sessions:
                    members.add(process.pid)
        grown = True
        # Descendants that left the session, without the mark.
        while grown:
            more = {pid for pid, parent in parents.items() if parent in members and pid not in members}
            members |= more
            grown = bool(more)
        found = (identify(pid) for pid in members)
        return [process for process in found if process is not None and is_alive(process)]

    def reaped(self, pid: int) -> None:
        """Forget the session of a child whose exit code was collected, if it is empty: its number may come again."""
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            if not any(_session(process) == pid for process in psutil.pids()):
                self._sessions.discard(pid)
                self._tell_watcher(f"-{pid}\n")
        except PermissionError:
            # A process is left in it that may not be signalled.
            return

    def terminate(self, victims: Collection[ProcessId]) -> None:
        self._signal(victims, signal.SIGTERM)

    def kill(self, victims: Collection[ProcessId]) -> None:
        self._signal(victims, signal.SIGKILL)

    def close(self) -> None:
        """Let the watcher end the rest."""
        if self._watcher is not None:
            try:
                self._watcher.communicate(timeout=5.0)  # closes its input
            except subprocess.TimeoutExpired:
                self._watcher.kill()
                self._watcher.wait(timeout=5.0)
        self._forker.shutdown()

    def _tell_watcher(self, line: str) -> None:
        if self._watcher is not None and self._watcher.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it was killed; the death signal remains
                self._watcher.stdin.write(line.encode())

    @staticmethod
    def _signal(victims: Collection[ProcessId], number: signal.Signals) -> None:
        for process in victims:
            if is_alive(process):
                # Between this check and the next line lies the only moment in which a recycled pid could be hit.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, number)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1
