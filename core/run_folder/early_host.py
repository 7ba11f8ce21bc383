"""`EarlyHost`: a run host that is started while its run is still being checked.

Importing a host's modules takes as long as the check, and a machine has more than one core. The host waits for a file
in a temporary folder, which names the run's folder, or nothing where there is no run.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

from core.errors import RankdeckError
from core.held_files import read_utf8
from core.paths import PACKAGE_FOLDER
from core.processes import spawn_detached
from core.processes.identity import ProcessId, is_alive
from core.processes.program_environment import host_environment
from core.training_python import training_python

# The program that asked for it may be killed before it says anything.
_LIMIT_S: Final = 60.0
# An order that is whole is read long before this is over; one that the disk cut off, or a folder that is gone, never.
_GRACE_S: Final = 5.0
_POLL_S: Final = 0.005
_ORDER: Final = "order"


class EarlyHost:
    """Starts a host on entering; on leaving, ends it unless it was given a run.

    One that cannot be started, or has died, costs nothing: the run gets another, whose log says what is wrong.
    """

    def __init__(self) -> None:
        self.process: ProcessId | None = None
        self._folder: Path | None = None

    def __enter__(self) -> EarlyHost:
        with contextlib.suppress(RankdeckError, OSError):
            self._folder = Path(tempfile.mkdtemp(prefix="rankdeck-host-"))
            argv = [str(training_python().executable), "-m", "core.host.early", str(self._folder)]
            self.process = spawn_detached(argv, PACKAGE_FOLDER, host_environment(), self._folder / "host.log")
        return self

    def __exit__(self, *_: object) -> None:
        if self._order("") and self.process is not None and is_alive(self.process):
            # It would go on importing for seconds, which a slow machine feels.
            with contextlib.suppress(psutil.Error):
                host = psutil.Process(self.process.pid)
                host.kill()
                host.wait(_GRACE_S)
        if self._folder is not None and (self.process is None or not is_alive(self.process)):
            shutil.rmtree(self._folder, ignore_errors=True)

    def take(self, run_dir: Path) -> ProcessId | None:
        """Give it a run's folder; None where there is no such host."""
        is_there = self.process is not None and is_alive(self.process)
        return self.process if is_there and self._order(str(run_dir)) else None

    def _order(self, text: str) -> bool:
        """Write the order, unless there is one already."""
        try:
            return self._folder is not None and _write(self._folder / _ORDER, text)
        except OSError:
            return False


def _write(order: Path, text: str) -> bool:
    with order.open("x", encoding="utf-8", newline="\n") as file:
        file.write(f"{text}\n")
    return True


def wait_for_run(folder: Path) -> str:
    """Wait in the host for a run's folder; empty: there is none."""
    order, deadline, text = folder / _ORDER, time.monotonic() + _LIMIT_S, ""
    while not text.endswith("\n"):
        if (late_s := time.monotonic() - deadline) > _GRACE_S:
            return ""
        if late_s > 0:
            with contextlib.suppress(OSError):
                _write(order, "")
        time.sleep(_POLL_S)
        with contextlib.suppress(OSError):
            text = read_utf8(order)
    return text.removesuffix("\n")
