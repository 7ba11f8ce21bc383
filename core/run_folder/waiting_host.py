"""`WaitingHost`: a run host that is started while its run is still being checked.

Importing a host's modules takes as long as checking a run, and a machine has more than one core. There is no folder
yet: the host reads it from its standard input, and ends when that is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO

import psutil

from core.errors import RankdeckError
from core.paths import PACKAGE_FOLDER
from core.processes import spawn_listening
from core.processes.identity import ProcessId, is_alive
from core.processes.program_environment import program_environment
from core.protocol.rank_context import ENV_RANK, ENV_RUN_MARK
from core.training_python import training_python


class WaitingHost:
    """Starts a host on entering; on leaving, ends it if it was given no run.

    One that cannot be started, or has died, costs nothing: the run gets another, whose log says what is wrong.
    """

    def __init__(self) -> None:
        self.process: ProcessId | None = None
        self._stdin: IO[bytes] | None = None

    def __enter__(self) -> WaitingHost:
        argv = [str(training_python().executable), "-m", "core.host.waiting"]
        with contextlib.suppress(RankdeckError):
            self.process, self._stdin = spawn_listening(argv, PACKAGE_FOLDER, host_environment())
        return self

    def __exit__(self, *_: object) -> None:
        self._close_stdin()
        if self.process is not None and is_alive(self.process):
            with contextlib.suppress(psutil.Error):
                psutil.Process(self.process.pid).kill()
        self.process = None

    def take(self, run_dir: Path) -> ProcessId | None:
        process, self.process = self.process, None
        if process is None or self._stdin is None or not is_alive(process):
            return None
        try:
            self._stdin.write(json.dumps(str(run_dir)).encode() + b"\n")
        except OSError:  # it has died just now
            return None
        finally:
            self._close_stdin()
        return process

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            with contextlib.suppress(OSError):
                self._stdin.close()
            self._stdin = None


def host_environment() -> dict[str, str]:
    env = program_environment(os.environ, {"PYTHONUNBUFFERED": "1"})
    for name in (ENV_RUN_MARK, ENV_RANK):  # a run that is started from within a run is not the other's to end
        env.pop(name, None)
    return env
