"""Nodes process: `rankdeck train --nodes` as a child of the window, which reads the JSON lines that it prints.

It is in a session of its own, so that a run on several machines continues when the window is closed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.files.links import append_unlinked
from core.held_files import read_utf8
from core.launch.nodes.status import ERROR_EVENT, EVENT
from core.no_window import NO_WINDOW
from core.parsing import ParseError, parse_json
from core.processes.detached import not_started
from core.processes.program_environment import program_environment
from core.training_python import training_python

_POLL_S: Final = 0.2
_BLOCK: Final = 1 << 16
_KEPT_BYTES: Final = 1 << 20
_END_LIMIT_S: Final = 10.0
_MARKS: Final = tuple(f'"event": "{name}"'.encode() for name in (EVENT, ERROR_EVENT))


class NodesProcess:
    """The command, for one thread that reads; `interrupt` and `let_go` may be called from any.

    Args:
        arguments: What follows `rankdeck`.
        folder: Where it runs: one that all machines have.
        log: Gets what it prints for people.

    Raises:
        RankdeckError: It cannot be started.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, log: Path) -> None:
        argv = [str(training_python().executable), "-m", "core", *arguments, "--json"]
        self._log = log
        self._is_let_go = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            log.parent.mkdir(parents=True, exist_ok=True)
            with append_unlinked(log) as file:
                file.truncate(0)
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=file,
                    cwd=folder,
                    env=program_environment(os.environ),
                    start_new_session=True,
                    creationflags=NO_WINDOW,
                )
        except OSError as error:
            raise not_started(argv, folder, error) from error

    def events(self) -> Iterator[dict[str, Any]]:
        """The lines about machines and errors, until the process ends or is let go."""
        stdout = self._process.stdout
        assert stdout is not None
        rest = b""
        with stdout:
            while not self._is_let_go:
                if not select.select([stdout], [], [], _POLL_S)[0]:
                    continue
                block = os.read(stdout.fileno(), _BLOCK)
                if not block:
                    break
                *lines, rest = (rest + block).split(b"\n")
                rest = rest[-_KEPT_BYTES:]
                yield from filter(None, map(_event, lines))
        if self._is_let_go:
            self._process.returncode = 0  # it is init's from now on; Popen would warn that it still runs
        else:
            self._process.wait()

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def interrupt(self) -> None:
        """As Ctrl+C does: it leaves, and so do those that wait for it."""
        with contextlib.suppress(OSError):
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)

    def let_go(self) -> None:
        """Reads no more; the process continues."""
        self._is_let_go = True

    def end(self) -> None:
        deadline = time.monotonic() + _END_LIMIT_S
        self.interrupt()
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_S / 4)
        if self._process.poll() is None:
            self._process.kill()

    def failure(self) -> RankdeckError:
        """What it printed last, for an end without an error of its own."""
        try:
            lines = read_utf8(self._log, errors="replace").splitlines()
        except OSError:
            lines = []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
        return RankdeckError(
            f"The command ended with exit code {self._process.poll()}: {last}",
            f"Read {self._log}, and start the run again.",
            title="The run on several machines has not started",
        )


def _event(line: bytes) -> dict[str, Any] | None:
    if not any(mark in line[:64] for mark in _MARKS):  # most lines are metrics
        return None
    try:
        value = parse_json(line.decode("utf-8", "replace"))
    except ParseError:
        return None
    return value if isinstance(value, dict) else None


def error_of(event: dict[str, Any]) -> RankdeckError | None:
    """The error that a line tells; None where it is another line."""
    if event.get("event") != ERROR_EVENT:
        return None
    title, cause, step = (str(event.get(name) or "") for name in ("title", "cause", "next_step"))
    error = RankdeckError(cause, step, title=title or None)
    error.window_step = str(event.get("window_step") or step)
    return error
