"""`ProcessTree`: starts processes, owns them and everything they start, and ends them all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from core.errors import RankdeckError
from core.files.links import append_unlinked
from core.processes.exit_codes import describe_exit
from core.processes.identity import ProcessId, identify, is_alive
from core.processes.marks import new_mark
from core.protocol.rank_context import ENV_RUN_MARK

_POLL_S: Final = 0.02
"""Most processes of a tree are not this one's children, and `waitpid` waits for children only: so they are polled."""


class PlatformRules(Protocol):
    """What differs between Windows and POSIX; `ProcessTree` calls it and holds the policy."""

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        """Starts a process that cannot outlive this one, its output going to `log_fd`.

        Raises:
            OSError: It cannot be started.
        """
        ...

    def members(self) -> list[ProcessId]:
        """Living processes of the tree: those started here and what they started."""
        ...

    def reaped(self, pid: int) -> None:
        """The process started here with this pid has ended and its exit code was collected."""
        ...

    def terminate(self, victims: Collection[ProcessId]) -> None:
        """Asks the processes to end, where the platform has a way to ask; else ends them."""
        ...

    def kill(self, victims: Collection[ProcessId]) -> None:
        """Ends the processes without asking."""
        ...

    def close(self) -> None:
        """Lets go of the platform's handles; whatever still lives ends now."""
        ...


class Child:
    """One process that a `ProcessTree` started.

    Attributes:
        pid: Its process id.
        started: Unix time of its start in seconds.
        log: The file that holds everything it wrote to standard output and standard error.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, on_reaped: Callable[[int], None]) -> None:
        self._process = process
        self._on_reaped: Callable[[int], None] | None = on_reaped
        self.pid = process.pid
        identity = identify(process.pid)  # not yet reaped, so the pid is still its own, ended or not
        self.started = identity.started if identity is not None else time.time()
        self.log = log

    @property
    def identity(self) -> ProcessId:
        """Pid and start time."""
        return ProcessId(self.pid, self.started)

    @property
    def returncode(self) -> int | None:
        """As `subprocess` gives it, or None while it runs."""
        return self.poll()

    def poll(self) -> int | None:
        """The exit code, or None while it runs. Never waits."""
        return self._ended(self._process.poll())

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, or None when it still runs after `timeout_s` seconds."""
        try:
            return self._ended(self._process.wait(timeout=max(0.0, timeout_s)))
        except subprocess.TimeoutExpired:
            return None

    @property
    def outcome(self) -> str:
        """A few words: "is running", "exited normally", "killed (often by …)"."""
        code = self.poll()
        return "is running" if code is None else describe_exit(code)

    def _ended(self, code: int | None) -> int | None:
        if code is not None and self._on_reaped is not None:
            self._on_reaped(self.pid)
            self._on_reaped = None
        return code


class ProcessTree:
    """Processes that end when this process ends, with everything they start themselves.

    Made and closed by the run host; `close` (or leaving the ``with`` block, or the death of this process) ends
    what is left. Methods may be called from any thread, one at a time.

    Args:
        mark: Stands in the environment of every process started here and of all that those start (`marks`), in the
            place of a mark that this process was started with. None makes one.
        rules: How processes are started and ended. None takes the platform's.
    """

    def __init__(self, mark: str | None = None, rules: PlatformRules | None = None) -> None:
        self._mark = mark or new_mark()
        self._rules = rules or _platform_rules(self._mark)
        self._children: list[Child] = []
        self._closed = False

    def __enter__(self) -> ProcessTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def children(self) -> tuple[Child, ...]:
        """Every process started here, oldest first, ended ones included."""
        return tuple(self._children)

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> Child:
        """Starts a process.

        Args:
            argv: Program and arguments.
            env: Its whole environment.
            cwd: Its working directory.
            log: Gets its standard output and standard error from the first byte on, appended.

        Raises:
            RankdeckError: It cannot be started; says why.
        """
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with append_unlinked(log) as file:  # O_APPEND: what the process and its children write never overlaps
                process = self._rules.start(argv, {**env, ENV_RUN_MARK: self._mark}, cwd, file.fileno())
        except OSError as error:
            raise RankdeckError(
                f"{argv[0]} could not be started in {cwd}: {error.strerror or error}.",
                "Check that the program and both folders exist and may be used.",
                title="A process could not be started",
            ) from error
        child = Child(process, log, self._rules.reaped)
        self._children.append(child)
        return child

    def members(self) -> list[ProcessId]:
        """Every living process of the tree: children and what they started."""
        self._reap()
        return self._rules.members()

    def terminate(self) -> None:
        """Asks every process of the tree to end (SIGTERM). Windows has no way to ask: there it ends them."""
        self._rules.terminate(self.members())

    def kill(self, deadline: float) -> list[int]:
        """Ends every process of the tree and waits for it.

        Args:
            deadline: Moment on `time.monotonic` after which it waits no longer; it waits half a second at least,
                because a process needs a moment to die.

        Returns:
            Pids that would not die; empty when all are gone.
        """
        deadline = max(deadline, time.monotonic() + 0.5)
        seen: dict[ProcessId, None] = {}  # keeps those whose parent died first and that nothing links to us any more
        while True:
            seen.update(dict.fromkeys(self.members()))
            living = [process for process in seen if is_alive(process)]
            if not living:
                self._reap()
                return []
            self._rules.kill(living)
            # SIGKILL takes effect only after an uninterruptible system call (state D in ps(1)), in a GPU driver perhaps
            # after seconds, or never: hence the deadline.
            if self._gone(living, min(deadline, time.monotonic() + 0.5)):
                continue  # once more: something may have been started meanwhile
            if time.monotonic() >= deadline:
                self._reap()
                return sorted(process.pid for process in living if is_alive(process))

    def stop(self, ask: Callable[[], None], deadline: float, kill_wait_s: float = 10.0) -> list[int]:
        """The whole ladder: ask, wait, terminate, kill, wait a bounded time.

        Args:
            ask: Asks the processes in their own language to end.
            deadline: Moment on `time.monotonic` until which all of them together may take their time.
            kill_wait_s: How long the rest of the ladder may take.

        Returns:
            Pids that would not die; empty when all are gone.
        """
        ask()
        if self._gone_until(deadline):
            return []
        end = time.monotonic() + kill_wait_s
        self.terminate()
        if self._gone_until(time.monotonic() + kill_wait_s / 4):
            return []
        return self.kill(end)

    def close(self, kill_wait_s: float = 5.0) -> list[int]:
        """Ends what is left and lets go of the platform's handles.

        Returns:
            Pids that would not die within `kill_wait_s`; empty when all are gone.
        """
        if self._closed:
            return []
        self._closed = True
        unkillable = self.kill(time.monotonic() + kill_wait_s)
        self._rules.close()
        return unkillable

    def _reap(self) -> None:
        for child in self._children:
            child.poll()

    def _gone_until(self, deadline: float) -> bool:
        while self.members():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _gone(self, processes: Collection[ProcessId], deadline: float) -> bool:
        while True:
            self._reap()
            if not any(is_alive(process) for process in processes):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)


def _platform_rules(mark: str) -> PlatformRules:
    if sys.platform == "win32":
        from core.processes.windows import JobObjectRules

        return JobObjectRules()
    else:  # noqa: RET505, or mypy looks for sessions on Windows
        from core.processes.posix import SessionRules

        return SessionRules(mark)
