"""`Meeting`: a folder in which a run host meets the processes that a launcher has started to be its ranks.

Files, because nothing of ours listens before there is a host, and because each is whole or not there. The folder is
the user's alone: what it holds includes the token with which a rank speaks to its host. Who wrote a file is known by
pid and start time, so what a killed job left is never taken for a live one's.

``leader.json``   the process that starts the host, and the secret that the others repeat
``arrived-R``     process R, its device, and the flags that it was given
``open.json``     the run's folder, or why there is none
``host.json``     the run's host
``ask-R``         what the host asks of process R: to start its rank, to stop it
``rank-R``        what came of it: the rank's pid, its exit code
``over.json``     the run has ended; its exit code, and why it has failed
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.distributed import DistributedConfig
from core.config.mode import Mode
from core.errors import RankdeckError, RunBusyError, StateFileError
from core.files.atomic import explained, read_json, write_atomic
from core.files.private import make_private
from core.paths import data_folder
from core.processes.identity import ProcessId, is_alive

POLL_S: Final = 0.05
AGAIN: Final = "again.json"  # the launcher is about to start all processes again, and the run continues
_FOLDER: Final = "launched"
_OLD_S: Final = 7 * 86_400.0
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RememberedRun:
    """The run of a job, as it began; starts after that may have fewer devices.

    Attributes:
        run_dir: Its folder.
        global_batch: Samples of a step; None where the settings said none.
        mode: As the settings said.
    """

    run_dir: Path
    global_batch: int | None
    mode: Mode


class Meeting:
    """One start of a launcher's processes on this machine.

    Args:
        folder: Where they meet; `folder_of` says which.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # before there is a run

    def begin(self, leader: ProcessId, method: str, *, keep_run: bool, about: Mapping[str, Any] | None = None) -> str:
        """Makes the folder, empty, and says who leads; returns the secret that arrivals repeat.

        Args:
            leader: The process that starts the host.
            method: Which launcher has started it.
            keep_run: The launcher has started its processes again, for the run of before.
            about: What else the others should know.

        Raises:
            RunBusyError: A live process leads this job.
            PreflightError: The folder cannot be made.
        """
        living = self.leader()
        if living is not None and not living[0].is_same(leader):
            raise RunBusyError(
                f"Processes of this job are running already (process {living[0].pid} leads them).",
                "Wait for their end, or stop their run.",
            )
        with explained(f"{self.folder} could not be made"):
            _remove_old(self.folder.parent.parent)
            shutil.rmtree(self.folder if keep_run else self.folder.parent, ignore_errors=True)
            self.folder.mkdir(parents=True)
            with contextlib.suppress(OSError):  # a drive without access lists cannot keep a folder private
                for folder in (self.folder.parent.parent, self.folder.parent, self.folder):
                    make_private(folder)
        secret = secrets.token_hex(16)
        self.write("leader.json", {**_identity(leader), "secret": secret, "method": method, **(about or {})})
        return secret

    def leader(self) -> tuple[ProcessId, str] | None:
        """The live process that leads, and its secret; None before there is one."""
        value = self.read("leader.json")
        leader = None if value is None else ProcessId.from_json(value)
        return (leader, str(value["secret"])) if value and leader is not None and is_alive(leader) else None

    def remember_run(self, run: RememberedRun) -> None:
        """Keeps how the run began, for the processes that the launcher starts next."""
        before = self.remembered_run()
        if before is None or before.run_dir != run.run_dir:
            _write(
                self.folder.parent / "run.json",
                {"run_dir": str(run.run_dir), "global_batch_size": run.global_batch, "mode": run.mode},
            )

    def remembered_run(self) -> RememberedRun | None:
        """The run that an earlier start of this job has made."""
        value = _read(self.folder.parent / "run.json") or {}
        run_dir, batch = value.get("run_dir"), value.get("global_batch_size")
        if not isinstance(run_dir, str):
            return None
        return RememberedRun(
            Path(run_dir), batch if isinstance(batch, int) else None, Mode.read(str(value.get("mode")))
        )

    def remove(self, *, forget_run: bool) -> None:
        """Removes the folder; `forget_run`: this job will not continue its run."""
        shutil.rmtree(self.folder.parent if forget_run else self.folder, ignore_errors=True)

    # files

    def lives(self, _process: ProcessId) -> bool:
        """Whether a process that a file names is alive."""
        return is_alive(_process)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        _write(self.folder / name, value)

    def read(self, name: str) -> dict[str, Any] | None:
        return _read(self.folder / name)


def folder_of(place: DistributedConfig, parent: ProcessId) -> Path:
    """Where the processes of a job meet: the same for all of them, and for nothing else that lives.

    Args:
        place: One of them.
        parent: The process that started it, which names the job where its launcher gives it no name.
    """
    job = place.job or f"{parent.pid}:{parent.started:.2f}"
    key = hashlib.sha256(f"{place.launch_method}\n{job}".encode()).hexdigest()[:20]
    return data_folder() / _FOLDER / key / f"start-{place.restart_count}"


def error_in(value: Mapping[str, Any]) -> RankdeckError | None:
    """Why there is no run, or why it has failed, as ``open.json`` and ``over.json`` say it."""
    error = value.get("error")
    if not isinstance(error, dict):
        return None
    return RankdeckError(str(error.get("cause")), str(error.get("next_step")), title=str(error.get("title")))


def _identity(process: ProcessId) -> dict[str, Any]:
    return {"pid": process.pid, "started": process.started}


def _write(path: Path, value: Mapping[str, Any]) -> None:
    write_atomic(path, json.dumps(value), mode=0o600, durable=False)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        value = read_json(path, limit_bytes=_MAX_BYTES)
    except (StateFileError, RankdeckError):  # gone meanwhile
        return None
    return value if isinstance(value, dict) else None


def _remove_old(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for job in folder.iterdir():
            if time.time() - job.stat().st_mtime > _OLD_S:
                shutil.rmtree(job, ignore_errors=True)
