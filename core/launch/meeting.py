"""`Meeting`: a folder in which a run host meets the processes that a launcher has started to be its ranks.

Files, because nothing of ours listens before there is a host, and because each is whole or not there. The folder is the
user's alone: it holds the token with which a rank speaks to its host. Processes of one machine meet in the user's data
folder, those of several in the shared folder of runs.

``leader.json``   the process that starts the host, its address, and the secret that the others repeat
``arrived-R``     process R, its device, its machine, and a nonce of its own
``open.json``     the run's folder, or why there is none; for the processes whose nonces it names
``host.json``     the run's host
``ask-R``         a request of the host to process R: to start its rank, to stop it
``rank-R``        the answer: the rank's pid, its exit code
``over.json``     the run has ended; its exit code, and why it has failed
``run.json``      the run of this job, which the launcher's next start of the same processes continues
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.config.distributed import DistributedConfig
from core.errors import RankdeckError, RunBusyError, StateFileError
from core.files.atomic import explained, read_json, write_atomic
from core.files.private import make_private
from core.paths import data_folder
from core.processes.identity import ProcessId, is_alive

POLL_S: Final = 0.05
_FOLDER: Final = "launched"
_SHARED_FOLDER: Final = ".launched"  # in the folder of runs
_OLD_S: Final = 7 * 86_400.0
_MAX_BYTES: Final = 1 << 20


class Meeting:
    """The start of a launcher's processes.

    Args:
        folder: Where they meet (`folder_of`).
        is_shared: The folder is on a network drive, for processes on several machines.
        is_remote: The leader and the run's host are on another machine, so their pids mean nothing here.
    """

    def __init__(self, folder: Path, *, is_shared: bool = False, is_remote: bool = False) -> None:
        self.folder = folder
        self.is_remote = is_remote
        self._is_shared = is_shared

    # before there is a run

    def begin(self, leader: ProcessId, about: Mapping[str, Any], run_dir: Path | None, parent: ProcessId) -> str:
        """Make the folder, empty, and enter who leads; return the secret that arrivals repeat.

        Args:
            leader: The process that starts the host.
            about: Further fields of ``leader.json``.
            run_dir: The run that this start continues (`run_of`).
            parent: The launcher's process.

        Raises:
            RunBusyError: A live process leads this job.
            PreflightError: The folder cannot be made.
        """
        living = _process(self.read("leader.json"))
        if living is not None and is_alive(living) and not living.is_same(leader):
            raise RunBusyError(
                f"Processes of this job are running already (process {living.pid} leads them).",
                "Wait for their end, or stop their run.",
            )
        with explained(f"{self.folder} could not be made"):
            _remove_old(self.folder.parent)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            # A drive without access lists cannot keep a folder private.
            with contextlib.suppress(OSError):
                for folder in (self.folder.parent, self.folder):
                    make_private(folder)
        if run_dir is not None:
            self.remember_run(run_dir, parent)
        secret = secrets.token_hex(16)
        self.write("leader.json", {**_identity(leader), "secret": secret, **about})
        return secret

    def leader(self) -> dict[str, Any] | None:
        """Return the fields of ``leader.json``; None until a live process leads."""
        value = self.read("leader.json")
        leader = _process(value)
        return value if leader is not None and self.lives(leader) else None

    def remember_run(self, run_dir: Path, parent: ProcessId) -> None:
        """Keep the run for the processes that the same launcher starts next."""
        self.write("run.json", {**_identity(parent), "run_dir": str(run_dir)})

    def run_of(self, parent: ProcessId, *, is_restart: bool) -> Path | None:
        """Return the run of an earlier start by the same launcher; `is_restart`: it says that this is not its first."""
        value = self.read("run.json")
        known = _process(value)
        if value is None or known is None or not (is_restart or known.is_same(parent)):
            return None
        return Path(str(value["run_dir"]))

    def remove(self, *, forget_run: bool) -> None:
        """Remove the files; `forget_run`: no later start continues the run."""
        kept = None if forget_run else self.read("run.json")
        shutil.rmtree(self.folder, ignore_errors=True)
        if kept is not None:
            with contextlib.suppress(OSError, RankdeckError):
                self.folder.mkdir(parents=True, exist_ok=True)
                self.write("run.json", kept)

    # files

    def lives(self, process: ProcessId) -> bool:
        """Return whether the leader or the host is alive; of a remote one nothing is known, so yes."""
        return self.is_remote or is_alive(process)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        write_atomic(self.folder / name, json.dumps(value), mode=0o600, durable=False)

    def read(self, name: str) -> dict[str, Any] | None:
        if self._is_shared:
            self.refresh()
        path = self.folder / name
        if not path.exists():
            return None
        try:
            value = read_json(path, limit_bytes=_MAX_BYTES)
        except (StateFileError, RankdeckError):  # gone meanwhile
            return None
        return value if isinstance(value, dict) else None

    def leave(self, rank: int) -> None:
        """Take process R's arrival away: it has read how the run ended."""
        with contextlib.suppress(OSError):
            (self.folder / f"arrived-{rank}.json").unlink()

    def refresh(self) -> None:
        """Have NFS look for new files: it remembers missing ones for 30 s, but asks again if a folder is listed."""
        if self._is_shared:
            with contextlib.suppress(OSError):
                any(self.folder.iterdir())


def meeting_of(place: DistributedConfig, parent: ProcessId, runs_dir: Path) -> Meeting:
    """Return the meeting of a job's processes: the same for all of them, and for nothing else that lives.

    Args:
        place: One of them.
        parent: The process that started it, which names the job where its launcher gives it no name.
        runs_dir: The folder of runs, which machines share.
    """
    several = place.num_nodes > 1
    job = place.job or f"{parent.pid}:{parent.started:.2f}"
    key = hashlib.sha256(f"{place.launch_method}\n{job}".encode()).hexdigest()[:20]
    folder = runs_dir / _SHARED_FOLDER if several else data_folder() / _FOLDER
    return Meeting(folder / key, is_shared=several, is_remote=place.node_rank > 0)


def error_in(value: Mapping[str, Any]) -> RankdeckError | None:
    """Return why there is no run, or why it has failed, from ``open.json`` or ``over.json``."""
    error = value.get("error")
    if not isinstance(error, dict):
        return None
    return RankdeckError(str(error.get("cause")), str(error.get("next_step")), title=str(error.get("title")))


def _identity(process: ProcessId) -> dict[str, Any]:
    return {"pid": process.pid, "started": process.started}


def _process(value: dict[str, Any] | None) -> ProcessId | None:
    return None if value is None else ProcessId.from_json(value)


def _remove_old(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for job in folder.iterdir():
            if time.time() - job.stat().st_mtime > _OLD_S:
                shutil.rmtree(job, ignore_errors=True)
