"""Run copy: writes the data of a run on another machine into the run's folder here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from core.config.config_file import to_toml, without_version
from core.config.layers import config_from_mapping
from core.config.run_config import RunConfig
from core.errors import PreflightError, RankdeckError, StateFileError
from core.files.atomic import explained, write_atomic
from core.formatting import byte_size
from core.held_files import open_binary
from core.machines.answers import CHUNK_BYTES, WHOLE_BYTES, News, unreadable
from core.machines.machine import UnreachableError
from core.machines.run_files import LOGS, METRICS, WHOLE, growing_files, tail_hash
from core.machines.session import Session
from core.metrics.metrics_file import repair
from core.parsing import parse_toml
from core.processes.identity import own
from core.resume.changes import CHANGES
from core.run_folder.remote_run import RemoteRun
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

# Stays free on this disk, whatever a machine sends.
RESERVE_BYTES: Final = 200 << 20
TAKEN: Final = (
    *("steps", "epochs", "devices"),
    *(name for name in CHANGES if name not in ("env", "deepspeed_config")),
)
_QUIET_LIMIT_S: Final = 30.0


class RunCopy:
    """The copy of a run that is on another machine. One process has it at a time: the one that holds the run's lock."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._versions: dict[str, tuple[int, str]] = {}

    def update(self, session: Session, remote: RemoteRun) -> tuple[RunState, News]:
        """Copy what is new, but for the state; return the state there, and the frame that brought it.

        Raises:
            UnreachableError, ProtocolError: The connection broke, or brought something else.
            PreflightError: The disk refuses.
        """
        request = {"op": "update", "run_dir": remote.run_dir, "known": self.known()}
        last = News()
        for news in session.stream(request, News, _QUIET_LIMIT_S):
            check_room(self._store.dir, news.bytes)
            limit = CHUNK_BYTES if news.whole is None else WHOLE_BYTES
            self.take(news, b"".join(session.bytes_of(news.bytes, limit)))
            last = news
        try:
            return RunState.from_dict(last.state), last
        except StateFileError as error:
            raise unreadable(session.machine, error.cause) from None

    def known(self) -> dict[str, tuple[int, str]]:
        """What is here (`core.machines.run_files.Known`); a line of metrics that is not whole is cut off first."""
        found = dict(self._versions)
        for name in growing_files(self._store):
            path = self._store.dir / name
            if path.is_file():
                with explained(f"{path} could not be read"):
                    size = repair(path) if name == METRICS else path.stat().st_size
                found[name] = (size, tail_hash(path, size) if size else "")
        return found

    def take(self, news: News, data: bytes) -> None:
        """Write a change of a file.

        Raises:
            UnreachableError: It does not continue what is here; the next connection agrees on a place again.
            PreflightError: The disk refuses.
        """
        if news.file is not None:
            self._append(news.file, news.offset, data)
        elif news.restart is not None:
            path = self._growing(news.restart)
            with explained(f"{path} could not be written"):
                open_binary(path, "wb").close()
        elif news.whole in WHOLE:
            self._replace(news.whole, data)
            self._versions[news.whole] = (0, news.version)

    def write_state(self, state: RunState, *, live: bool) -> None:
        """Write the run's state; a live one names this process, which keeps the copy, as its host."""
        # Nothing here acts on a name that the other machine gives.
        self._store.write_state(state.replace(host=own() if live else None, run_id=self._store.dir.name))

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
                theirs = read_settings(data.decode("utf-8"))
                data = to_toml(taken_settings(self._store.config(), theirs)).encode("utf-8")
            except (RankdeckError, ValueError):
                return  # what is here stays
        write_atomic(self._store.dir / name, data)


def read_settings(text: str) -> RunConfig:
    """Read the settings in a `run.toml` of another machine; raises `RankdeckError` or `ValueError`."""
    path = Path("run.toml")
    return config_from_mapping(without_version(parse_toml(text), path), path)


def taken_settings(own: RunConfig, theirs: RunConfig) -> RunConfig:
    """Settings as they were recorded here when the run was sent, with what its machine may have changed since.

    That is what a resume or a fallback changes, and what leads neither to code nor to a file: a machine that is taken
    over could name anything there, and have it run here when the run is resumed here.
    """
    return own.replace(**{name: getattr(theirs, name) for name in TAKEN})


def check_room(folder: Path, size_bytes: int) -> None:
    """Refuse files that would fill the disk, with a `PreflightError`."""
    with explained(f"{folder} could not be looked into"):
        free = shutil.disk_usage(folder).free
    if free < size_bytes + RESERVE_BYTES:
        raise PreflightError(
            f"{byte_size(size_bytes)} are to be fetched into {folder}, and its disk has {byte_size(free)} free.",
            f"Free some space: {byte_size(RESERVE_BYTES)} always stay free.",
            title="The disk is too full",
        )


def catch_up(session: Session, store: RunStore, remote: RemoteRun) -> RunState:
    """Update the copy of a run once, and return its state there; the caller holds the run's lock."""
    copy = RunCopy(store)
    state, news = copy.update(session, remote)
    if not news.live:
        copy.write_state(state, live=False)
    return state
