"""Following: starts the process that keeps the copy of a run on another machine, where none does."""

from __future__ import annotations

import sys
import time
from typing import Final

from core.errors import RunBusyError
from core.machines.machine_list import find_machine
from core.paths import PACKAGE_FOLDER
from core.processes import spawn_detached
from core.run_folder.remote_run import read_remote
from core.run_folder.state import INTERRUPTED
from core.run_folder.store import RunStore
from core.run_folder.waiting_host import host_environment

START_LIMIT_S: Final = 15.0
_POLL_S: Final = 0.05


def start_following(store: RunStore) -> None:
    """Starts a follower; it outlives this process.

    Raises:
        RankdeckError: It cannot be started.
    """
    argv = [sys.executable, "-m", "core.machines.follow", str(store.dir)]
    process = spawn_detached(argv, PACKAGE_FOLDER, host_environment(), store.logs / "follow.log")
    store.write_spawned_host(store.stored_state().attempt, process)


def needs_following(store: RunStore) -> bool:
    """Whether the run is on another machine, was live when last heard of, and nothing follows it.

    Raises:
        StateFileError: The run's files are damaged.
    """
    stored = store.stored_state()
    if not stored.is_live or store.state().state != INTERRUPTED:
        return False
    remote = read_remote(store.dir)
    return remote is not None and remote.is_there


def followed(store: RunStore) -> RunStore:
    """The run, followed again where that is needed.

    Raises:
        UsageError: The machine is not known any more.
        RankdeckError: The follower cannot be started, or ended at once; its log says why.
    """
    remote = read_remote(store.dir) if needs_following(store) else None
    if remote is None:
        return store
    find_machine(remote.machine)
    start_following(store)
    deadline = time.monotonic() + START_LIMIT_S
    while not store.is_locked():
        if time.monotonic() > deadline:
            raise RunBusyError(
                f"What follows {store.dir.name} did not start within {START_LIMIT_S:.0f} s.",
                f"See {store.logs / 'follow.log'}.",
                title="The run is not being followed",
            )
        if not store.stored_state().is_live:
            break
        time.sleep(_POLL_S)
    return store
