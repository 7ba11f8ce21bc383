"""`spawn_detached`: starts a process that outlives the one that started it."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from core.errors import RankdeckError
from core.files.links import append_unlinked
from core.processes.identity import ProcessId, identify
from core.program_search import NO_WINDOW

_START_LIMIT_S: Final = 30.0
_IN_A_JOB: Final = (
    b"This process could not leave the job of the program that started it, and will end when that job is closed.\n"
)


def spawn_detached(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> ProcessId:
    """Start a process that this one does not wait for, and that does not end with it.

    Args:
        argv: Program and arguments.
        cwd: Its working directory.
        env: Its whole environment.
        log: Gets its standard output and standard error from the first byte on, appended.

    Returns:
        The process that was started. In a Windows virtual environment that is the small ``python.exe`` which runs
        the real one as its child, so a program that is told its own pid by others should say it itself.

    Raises:
        RankdeckError: It cannot be started.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with append_unlinked(log) as file:
            return _spawn(argv, cwd, env, file)
    except OSError as error:
        raise not_started(argv, cwd, error) from error


def not_started(argv: Sequence[str], cwd: Path, error: OSError) -> RankdeckError:
    """Make the error for a process that the system did not start."""
    return RankdeckError(
        f"{argv[0]} could not be started in {cwd}: {error.strerror or error}.",
        "Check that the program and both folders exist and may be used.",
        title="A process could not be started",
    )


if sys.platform == "win32":
    _QUIET: Final = NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP

    def _spawn(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: IO[bytes]) -> ProcessId:
        try:
            process = _popen(argv, cwd, env, log, _QUIET | subprocess.CREATE_BREAKAWAY_FROM_JOB)
        except PermissionError:  # the job that this process is in lets no process leave
            log.write(_IN_A_JOB)
            log.flush()
            process = _popen(argv, cwd, env, log, _QUIET)
        # Tells Popen that it will not be waited for: no warning, no zombies on Windows.
        process.returncode = 0
        return identify(process.pid) or ProcessId(process.pid, time.time())

    def _popen(
        argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: IO[bytes], flags: int
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=cwd,
            env=dict(env),
            creationflags=flags,
        )

else:

    def _spawn(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: IO[bytes]) -> ProcessId:
        # The launcher starts it, tells its pid and ends, so that init inherits (and reaps) it and not we.
        from core.processes.posix import LAUNCHER

        with subprocess.Popen(
            [*LAUNCHER, "detach", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        ) as launcher:
            if launcher.stdout is None or not select.select([launcher.stdout], [], [], _START_LIMIT_S)[0]:
                launcher.kill()
                raise OSError(f"nothing happened for {_START_LIMIT_S:.0f} s")
            answer = launcher.stdout.readline().decode("utf-8", errors="replace").strip()
            if not answer.isdigit():
                raise OSError(answer.removeprefix("error ") or "the launcher failed; its log says why")
            # The launcher still holds the pid: it has not reaped.
            return identify(int(answer)) or ProcessId(int(answer), time.time())
