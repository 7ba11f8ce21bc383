"""`ProcessTree`: starts processes, owns them and their children, and ends them all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.files.links import append_unlinked
from core.processes.detached import not_started
from core.processes.exit_codes import describe_exit
from core.processes.identity import ProcessId, is_alive
from core.processes.marks import new_mark
from core.protocol.rank_context import ENV_RUN_MARK

if sys.platform == "win32":
    from core.processes.windows import JobObjectRules as PlatformRules
else:
    from core.processes.posix import SessionRules as PlatformRules

# Most processes of a tree are not this one's children, and `waitpid` waits for children only: so they are polled.
_POLL_S: Final = 0.02


class Child:
    """A process that a `ProcessTree` started; `log` holds its standard output and standard error."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, on_reaped: Callable[[int], None]) -> None:
        self._process = process
        self._on_reaped: Callable[[int], None] | None = on_reaped
        self.pid = process.pid
        self.log = log

    def poll(self) -> int | None:
        """The exit code as `subprocess` gives it, or None while it runs. Never waits."""
        code = self._process.poll()
        if code is not None and self._on_reaped is not None:
            self._on_reaped(self.pid)
            self._on_reaped = None
        return code

    @property
    def outcome(self) -> str:
        """Its end as text: "is running", "exited normally", "killed (often by …)"."""
        code = self.poll()
        return "is running" if code is None else describe_exit(code)


class ProcessTree:
    """Processes that end when this process ends, with all their children.

    Made and closed by the run host; `close`, or the death of this process, ends the rest. Methods may be called from
    any thread, one at a time.

    Args:
        mark: Stands in the environment of every process started here and of all their children (`marks`), in the
            place of a mark that this process was started with. None makes one.
        rules: The platform's rules by default.
    """

    def __init__(self, mark: str | None = None, rules: PlatformRules | None = None) -> None:
        self._mark = mark or new_mark()
        self._rules = rules or PlatformRules(self._mark)
        self._children: list[Child] = []
        self._closed = False

    def __enter__(self) -> ProcessTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> Child:
        """Start a process; the arguments and errors are those of `spawn_detached`."""
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            # O_APPEND: what the process and its children write never overlaps.
            with append_unlinked(log) as file:
                process = self._rules.start(argv, {**env, ENV_RUN_MARK: self._mark}, cwd, file.fileno())
        except OSError as error:
            raise not_started(argv, cwd, error) from error
        child = Child(process, log, self._rules.reaped)
        self._children.append(child)
        return child

    def members(self) -> list[ProcessId]:
        """Find every living process of the tree: children and their children."""
        self._reap()
        return self._rules.members()

    def terminate(self) -> None:
        """Ask every process of the tree to end (SIGTERM). Windows has no way to ask: there it ends them."""
        self._rules.terminate(self.members())

    def kill(self, deadline: float) -> list[int]:
        """End every process of the tree and wait for it.

        Args:
            deadline: Moment on `time.monotonic` until which it waits, but for half a second at least, because a process
                needs a moment to die.

        Returns:
            Pids that would not die.
        """
        deadline = max(deadline, time.monotonic() + 0.5)
        # Keeps those whose parent died first and that nothing links to us any more.
        seen: dict[ProcessId, None] = {}
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
                # Once more: something may have been started meanwhile.
                continue
            if time.monotonic() >= deadline:
                self._reap()
                return sorted(process.pid for process in living if is_alive(process))

    def stop(self, limit_s: float) -> list[int]:
        """Terminate, and kill the rest after a quarter of the time; return pids that would not die."""
        began = time.monotonic()
        if not self.members():
            return []
        self.terminate()
        while self.members():
            if time.monotonic() >= began + limit_s / 4:
                return self.kill(began + limit_s)
            time.sleep(_POLL_S)
        return []

    def close(self, kill_wait_s: float = 5.0) -> list[int]:
        """End the rest and close the platform's handles; return pids that would not die within `kill_wait_s`."""
        if self._closed:
            return []
        self._closed = True
        unkillable = self.kill(time.monotonic() + kill_wait_s)
        self._rules.close()
        return unkillable

    def _reap(self) -> None:
        for child in self._children:
            child.poll()

    def _gone(self, processes: Collection[ProcessId], deadline: float) -> bool:
        while True:
            self._reap()
            if not any(is_alive(process) for process in processes):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
