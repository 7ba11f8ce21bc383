"""Processes of tests: forked from one that has imported torch, which is most of what a short one does, or new ones."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).resolve().parents[2]
_IMPORTED_BEFORE: Final = "tests.helpers.imported_before_forks"


def can_fork() -> bool:
    """Whether there are such processes here."""
    return "forkserver" in multiprocessing.get_all_start_methods()


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
    """A child of the process that has imported torch."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid = process.pid

    def ended(self, within_s: float) -> int | None:
        self._process.join(within_s)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()


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


def fork(target: Callable[..., object], *arguments: object) -> Forked:
    """Starts a child of a server of Python's `multiprocessing`, one for each process that runs tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_IMPORTED_BEFORE])
    _start_server()
    made = context.Process(target=target, args=arguments)
    made.start()
    return Forked(made)


def _start_server() -> None:
    """It looks for what it imports where it is started, which is some test's folder, and says nothing without it."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
