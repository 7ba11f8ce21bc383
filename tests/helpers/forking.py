"""Processes of tests: forked from one that has imported what they need, most of a short one's work, or new ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).resolve().parents[2]
PLAIN: Final = "tests.helpers.imported_before_plain_forks"
# What a process has imported before it is forked: without PyTorch, and with it.
TORCH: Final = "tests.helpers.imported_before_forks"
_ENV_SERVERS: Final = "RANKDECK_TESTS_FORK_SERVERS"
_START_LIMIT_S: Final = 120.0
_KILL_LIMIT_S: Final = 10.0
_servers: Final[list[subprocess.Popen[bytes]]] = []


def can_fork() -> bool:
    return sys.platform == "linux"


def own_servers(folder: Path) -> None:
    """Has this process and those that it starts use servers that end with it; their sockets are in this folder."""
    os.environ[_ENV_SERVERS] = f"{os.getpid()}:{folder}"


class StartedProcess(Protocol):
    """A process, however it was started."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def ended(self, within_s: float) -> int | None:
        """Waits for its exit code; None when the time is over."""

    def terminate(self) -> None:
        """Asks it to end, where there is a way to ask."""

    def kill(self) -> None:
        """Ends it and lets go of it."""


class Forked:
    """A child of a server (`fork_server`)."""

    def __init__(self, server: Connection) -> None:
        self._server = server
        self._code: int | None = None
        self.pid: int = server.recv()

    def ended(self, within_s: float) -> int | None:
        if self._code is None and self._server.poll(within_s):
            self._code = self._server.recv()
            self._server.close()
        return self._code

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)
        self.ended(_KILL_LIMIT_S)

    def _send(self, number: int) -> None:
        if self.ended(0) is None:
            os.kill(self.pid, number)


class Spawned:
    """A Python of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def ended(self, within_s: float) -> int | None:
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def fork(imported: str, target: Callable[..., object], *arguments: object) -> Forked:
    """Starts a child of the server that has imported `PLAIN` or `TORCH`, and the server before, if it is the first."""
    server = _connect(imported)
    server.send((target, arguments, sys.path))
    return Forked(server)


def _connect(imported: str) -> Connection:
    owner, _, folder = os.environ[_ENV_SERVERS].partition(":")
    address, deadline = str(Path(folder) / imported), time.monotonic() + _START_LIMIT_S
    started = False
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(address)
            return Connection(line.detach())
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
            assert time.monotonic() < deadline, "the fork server did not start"
        if not started:
            argv = [sys.executable, "-m", "tests.helpers.fork_server", imported, address, owner]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            _servers.append(subprocess.Popen(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL))
            started = True
        time.sleep(0.02)
