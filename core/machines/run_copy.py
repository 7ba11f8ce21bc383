"""Run copy: writes into a run's folder here what comes from the run's folder on another machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from core.config.config_file import to_toml, without_version
from core.config.layers import config_from_mapping
from core.errors import RankdeckError
from core.files.atomic import explained, write_atomic
from core.held_files import open_binary
from core.machines.machine import UnreachableError
from core.machines.run_stream import LOGS, METRICS, WHOLE, tail_hash
from core.machines.session import Session
from core.metrics.metrics_file import repair
from core.parsing import parse_toml
from core.processes.identity import own
from core.run_folder.remote_run import RemoteRun, with_paths
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

QUIET_LIMIT_S: Final = 30.0
"""The other side says something every few seconds; after this long the connection is dead."""


class RunCopy:
    """The copy of a run that is on another machine. One process has it at a time: the one that holds the run's lock.

    Args:
        store: The folder here.
        remote: Where the run is.
    """

    def __init__(self, store: RunStore, remote: RemoteRun) -> None:
        self._store = store
        self._remote = remote

    def known(self) -> dict[str, tuple[int, str]]:
        """Size and `tail_hash` of each file that only grows; lines that are not whole are cut off first.

        Raises:
            PreflightError: A file cannot be read.
        """
        found = {}
        names = [METRICS]
        if self._store.logs.is_dir():
            names += [f"logs/{path.name}" for path in sorted(self._store.logs.iterdir())]
        for name in names:
            path = self._store.dir / name
            if path.is_file() and (name == METRICS or LOGS.fullmatch(name)):
                with explained(f"{path} could not be read"):
                    size = repair(path) if name == METRICS else path.stat().st_size
                found[name] = (size, tail_hash(path, size) if size else "")
        return found

    def take(self, frame: dict[str, Any], data: bytes) -> None:
        """Writes what a frame of a `RunStream` brings, but for the state.

        Raises:
            UnreachableError: It does not continue what is here; the next connection agrees on a place again.
            PreflightError: The disk refuses.
        """
        if "file" in frame:
            self._append(str(frame["file"]), int(frame["offset"]), data)
        elif "restart" in frame:
            with explained(f"{self._growing(str(frame['restart']))} could not be written"):
                open_binary(self._growing(str(frame["restart"])), "wb").close()
        elif frame.get("whole") in WHOLE:
            self._replace(str(frame["whole"]), data)

    def write_state(self, state: RunState, *, live: bool) -> None:
        """Writes the run's state; a live one names this process, which keeps the copy, as its host."""
        self._store.write_state(state.replace(host=own() if live else None))

    def _append(self, name: str, offset: int, data: bytes) -> None:
        path = self._growing(name)
        with explained(f"{path} could not be written"), open_binary(path, "ab") as file:
            if file.seek(0, os.SEEK_END) != offset:
                raise UnreachableError(f"{path} ends elsewhere than at byte {offset:,}.", "It is read again.")
            file.write(data)

    def _growing(self, name: str) -> Path:
        if name != METRICS and not LOGS.fullmatch(name):
            raise UnreachableError(f"{name!r:.80} is not a file of a run.", "Use the same version on both sides.")
        return self._store.dir / name

    def _replace(self, name: str, data: bytes) -> None:
        if name in ("run.toml", "attempt.toml"):
            try:
                values = parse_toml(data.decode("utf-8"))
                path = self._store.dir / name
                config = config_from_mapping(without_version(values, path), path)
                data = to_toml(with_paths(config, self._remote.paths)).encode("utf-8")
            except (RankdeckError, ValueError):
                return  # a recipe's own file, or a newer one's: what is here stays
        write_atomic(self._store.dir / name, data)


def catch_up(session: Session, store: RunStore, remote: RemoteRun) -> RunState:
    """Brings the copy of a run to what is there now; the caller holds the run's lock.

    Returns:
        The run's state there.

    Raises:
        RankdeckError: The connection broke, or a disk refuses.
    """
    copy, state = RunCopy(store, remote), store.stored_state()
    request = {"op": "follow", "run_dir": remote.run_dir, "known": copy.known(), "once": True}
    for frame in session.stream(request, QUIET_LIMIT_S):
        data = b"".join(session.bytes_of(frame))
        copy.take(frame, data)
        if "state" in frame:
            state = RunState.from_dict(frame["state"])
            if not frame["live"]:
                copy.write_state(state, live=False)
    return state
