"""Follower: ``python -m core.machines.follow RUN_DIR`` keeps the copy of a run that trains on another machine.

It is to the copy what a host is to a run: it holds the lock, writes the files, and `host.json` leads to the run's real
host, through a port that ssh forwards. So the window and every command work on the copy as on any other run. When the
connection breaks it says so in the state and connects again, for as long as the machine is known and the folder is
here. It ends when the run has ended and everything is here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import Final

from core.errors import RankdeckError, RunBusyError, RunNotFoundError, UsageError
from core.files.links import LinkError
from core.machines.answers import News
from core.machines.machine import Machine, MachineError
from core.machines.machine_list import find_machine
from core.machines.run_copy import RunCopy
from core.machines.session import serving
from core.paths import PACKAGE_FOLDER
from core.processes import spawn_detached
from core.processes.program_environment import host_environment
from core.run_folder.remote_run import NO_CONNECTION, RemoteRun, read_remote
from core.run_folder.state import INTERRUPTED, RunState
from core.run_folder.store import RunStore

_START_LIMIT_S: Final = 15.0
_POLL_S: Final = 0.05
_UPDATE_EVERY_S: Final = 0.3
FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 10.0
_log = logging.getLogger(__name__)


class Follower:
    """Follows one run until it has ended.

    Args:
        store: The copy; this process holds its lock.
        remote: The run there.
    """

    def __init__(self, store: RunStore, remote: RemoteRun) -> None:
        self._store = store
        self._remote = remote
        self._copy = RunCopy(store)
        self._state: RunState = store.stored_state()
        self._written: tuple[RunState, bool] | None = None
        self._wait_s = FIRST_WAIT_S
        self._port: int | None = None

    def run(self) -> None:
        """Connect again and again.

        Raises:
            RankdeckError: It cannot go on: the machine is not known any more, or the disk refuses.
        """
        self._copy.write_state(self._state, live=True)
        try:
            while not self._followed() and self._store.state_json.exists():
                pass
        finally:
            self._store.remove_host_json()

    def _followed(self) -> bool:
        """Follow for as long as a connection lasts; return True once the run has ended."""
        machine = find_machine(self._remote.machine)
        try:
            return self._follow(machine)
        except LinkError:
            raise  # to try again changes nothing
        except RankdeckError as error:
            self._store.remove_host_json()
            if isinstance(error, MachineError) and error.title == RunNotFoundError.title:
                self._say_gone(error)
                return True
            _log.warning("%s", error)
            self._say_cut(error)
        time.sleep(self._wait_s)
        self._wait_s = min(LONGEST_WAIT_S, 2 * self._wait_s)
        return False

    def _follow(self, machine: Machine) -> bool:
        """Update the copy over one connection.

        Returns:
            True: the run has ended. False: its host listens on another port than the one that is forwarded, or the
            folder here was removed.
        """
        forward = None if self._port is None else (_free_port(), self._port)
        with serving(machine, forward) as session:
            while self._store.state_json.exists():
                self._state, news = self._copy.update(session, self._remote)
                self._wait_s = FIRST_WAIT_S
                if not self._has_taken_state(news, forward):
                    return False
                if not news.live:
                    return True
                time.sleep(_UPDATE_EVERY_S)
        return False

    def _has_taken_state(self, news: News, forward: tuple[int, int] | None) -> bool:
        """Write the state that came; return False where the host listens on a port that is not forwarded."""
        is_new = (self._state, news.live) != self._written
        if not news.live:
            self._store.remove_host_json()
        elif is_new and forward is not None and news.port == forward[1]:
            self._store.write_host_json(forward[0], news.token, os.getpid())
        if is_new:
            self._copy.write_state(self._state, live=news.live)
            self._written = (self._state, news.live)
        if news.live and news.port is not None and news.port != self._port:
            self._store.remove_host_json()
            self._port, self._written = news.port, None
            return False
        return True

    def _say_gone(self, error: MachineError) -> None:
        """Write a state that says that there is nothing to follow."""
        name = self._remote.machine
        failure = {
            "title": f"The run is not on {name}",
            "cause": error.cause,
            "next_step": f"It was not started before the connection broke, or was removed on {name}. Start it again.",
        }
        ended = self._state.replace(state="failed", error=failure, trouble=None, exit_code=error.exit_code)
        self._copy.write_state(ended, live=False)

    def _say_cut(self, error: RankdeckError) -> None:
        """Write into the state that there is no connection, in place of any other trouble."""
        self._written = None
        trouble = {
            "title": f"{NO_CONNECTION} {self._remote.machine}",
            "cause": error.cause,
            "next_step": f"Nothing is lost: the run continues there, and is followed again soon. {error.next_step}",
        }
        with contextlib.suppress(RankdeckError):
            if self._store.state_json.exists() and self._store.stored_state().trouble != trouble:
                self._copy.write_state(self._state.replace(trouble=trouble), live=True)


def start_following(store: RunStore) -> None:
    """Start a follower; it outlives this process.

    Raises:
        RankdeckError: It cannot be started.
    """
    argv = [sys.executable, "-m", "core.machines.follow", str(store.dir)]
    process = spawn_detached(argv, PACKAGE_FOLDER, host_environment(), store.logs / "follow.log")
    store.write_spawned_host(store.stored_state().attempt, process)


def followed(store: RunStore) -> RunStore:
    """The run, followed again if it is on another machine, was live when last heard of, and nothing follows it.

    Raises:
        UsageError: The machine is not known any more.
        RankdeckError: The follower cannot be started, or ended at once; its log says why.
    """
    remote, was_live = read_remote(store.dir), store.stored_state().is_live
    if remote is None or not remote.is_there or not was_live or store.state().state != INTERRUPTED:
        return store
    find_machine(remote.machine)
    start_following(store)
    deadline = time.monotonic() + _START_LIMIT_S
    while not store.is_locked():
        if time.monotonic() > deadline:
            raise RunBusyError(
                f"What follows {store.dir.name} did not start within {_START_LIMIT_S:.0f} s.",
                f"See {store.logs / 'follow.log'}.",
                title="The run is not being followed",
            )
        if not store.stored_state().is_live:
            break
        time.sleep(_POLL_S)
    return store


def main(arguments: list[str]) -> int:
    """Follow the run in a folder; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if len(arguments) != 1:
        sys.stderr.write("Usage: python -m core.machines.follow RUN_DIR\n")
        return UsageError.exit_code
    try:
        store = RunStore.open(Path(arguments[0]))
        with store.lock():
            remote = read_remote(store.dir)
            if remote is None or not remote.is_there:
                return 0
            Follower(store, remote).run()
    except RankdeckError as error:
        _log.error("%s", error)
        return error.exit_code
    return 0


def _free_port() -> int:
    """A port of the loopback that nothing uses just now. Should another program take it first, ssh ends, and another
    one is tried."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
