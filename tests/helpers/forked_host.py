"""A run's host and its ranks, forked from a process that has imported what they need already.

Imports are most of what a short run does. So tests of what runs do, killed ones included, have the processes of
the host and of every rank made in this way: ranks are the host's children as ever, and do what they always do. Tests of
how they are started and tied together do without. Linux only; elsewhere a host is started as everybody starts it.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from core import client
from core.errors import RankdeckError
from core.run_folder.early_host import EarlyHost
from core.run_folder.store import RunStore
from tests.helpers import forking

END_LIMIT_S: Final = 10.0
FAKE_RECIPE: Final = str(Path(__file__).parent / "recipes" / "fake")
# Recipes whose ranks import no torch; a script is a process of its own.
WITHOUT_TORCH: Final = (FAKE_RECIPE, "script")
_PR_SET_CHILD_SUBREAPER: Final = 36
_REQUEST_BYTES: Final = 200_000
_POLL_S: Final = 0.02


def can_fork() -> bool:
    return sys.platform == "linux" and forking.can_fork()


def start(run_dir: Path, environment: Mapping[str, str]) -> forking.Forked:
    """Starts one; its output goes nowhere.

    Args:
        run_dir: The run.
        environment: The host's; ranks get theirs from it.
    """
    return forking.fork(_imported(run_dir), _host, str(run_dir), dict(environment))


def _imported(run_dir: Path) -> str:
    try:
        recipe = RunStore(run_dir).config().recipe
    except (RankdeckError, OSError):
        return forking.PLAIN  # there will be no rank
    return forking.PLAIN if recipe in WITHOUT_TORCH else forking.TORCH


@contextmanager
def forked_hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `core.client` starts in this process is forked meanwhile, where that can be; all of it is to have ended."""
    if not can_fork():
        yield
        return
    started: list[forking.Forked] = []

    def start_host(store: RunStore, _: object = None) -> None:
        started.append(start(store.dir, {**os.environ, "PYTHONPATH": str(forking.ROOT)}))

    monkeypatch.setattr(client, "_spawn_host", start_host)
    monkeypatch.setattr(EarlyHost, "__enter__", lambda early: early)  # none that would be spawned
    yield
    left = [process.pid for process in started if process.ended(END_LIMIT_S) is None]
    for process in started:
        process.kill()
    assert not left, f"hosts outlive their test: {left}"


def _host(run_dir: str, environment: dict[str, str]) -> NoReturn:
    from core.host.__main__ import main
    from core.processes import ProcessTree
    from core.processes.posix import SessionRules

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.environ.clear()
    os.environ.update(environment)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # ranks become this process's children
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    host = os.getpid()
    if os.fork() == 0:  # now, while this process has no threads
        ours.close()
        _make_ranks(theirs, host)
    theirs.close()

    def start_rank(argv: Sequence[str], env: Mapping[str, str], cwd: Path, log_fd: int) -> subprocess.Popen[bytes]:
        assert argv[0] == sys.executable, argv
        request = json.dumps({"argv": argv[1:], "env": env, "cwd": str(cwd)}).encode()
        socket.send_fds(ours, [request], [log_fd])
        return _Rank(int(ours.recv(64)))

    os._exit(main([run_dir], lambda mark: ProcessTree(mark, SessionRules(mark, start_rank))))


class _Rank(subprocess.Popen[bytes]):
    """What the host sees of a rank, which it did not start but is the parent of."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode = None

    def __del__(self) -> None:
        """It never had anything to close."""

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        assert timeout is not None
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("rank", timeout)
            time.sleep(_POLL_S)
        return code


def _make_ranks(line: socket.socket, host: int) -> NoReturn:
    """A process beside the host that never does anything else, and so has nothing that a fork could tear."""
    while True:
        request, files, _, _ = socket.recv_fds(line, _REQUEST_BYTES, 1)
        if not request:
            os._exit(0)
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            rank = os.fork()
            if rank == 0:
                line.close()
                _become_rank(json.loads(request), files[0], host)
            os.write(tell, str(rank).encode())
            os._exit(0)
        os.waitpid(between, 0)  # from here on the rank is the host's child
        line.send(os.read(told, 64))
        for descriptor in (told, tell, *files):
            os.close(descriptor)


def _become_rank(request: dict[str, Any], log: int, host: int) -> NoReturn:
    os.setsid()
    while os.getppid() != host:
        time.sleep(0.001)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(str(request["cwd"]))
    program, *arguments = request["argv"]
    if program == "-m":
        module, *sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [program, *arguments]
        sys.path.insert(0, str(Path(program).parent))
        runpy.run_path(program, run_name="__main__")
    os._exit(0)
