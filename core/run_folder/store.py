"""A run's folder: its files by name, its state, its host's address; and the folder that holds all runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config import RunConfig
from core.errors import (
    ConnectionRefusedByHostError,
    RankdeckError,
    RunNotFoundError,
    StateFileError,
    UsageError,
)
from core.files.atomic import explain, explained, parse_path, read_json, remove_temporaries, write_atomic
from core.files.links import refuse_link, refuse_links_below
from core.paths import CHECKPOINTS, OLD_CHECKPOINTS
from core.processes.identity import ProcessId, is_alive
from core.processes.lock import RunLock, is_held
from core.run_folder.host_secret import read_secret, remove_secret, write_secret
from core.run_folder.notes import NOTES, read_notes
from core.run_folder.remote_run import read_remote
from core.run_folder.state import INTERRUPTED, MAX_STATE_BYTES, RunState

DAMAGED: Final = "damaged"
_OWN_FILES: Final = (
    "run.toml",
    "state.json",
    "metrics.jsonl",
    "chunk_tracker_state.json",
    CHECKPOINTS,
    OLD_CHECKPOINTS,
)
_NAMES_TRIED: Final = 20
# A window's own file in `columns`.
BINS: Final = "bins.bin"


@dataclass(frozen=True, slots=True)
class HostInfo:
    port: int
    token: str
    pid: int


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One line of the list of runs; `state` is None, and `problem` has the reason, when it cannot be read."""

    path: Path
    state: RunState | None
    problem: str | None = None

    @property
    def word(self) -> str:
        return DAMAGED if self.state is None else self.state.state


class RunStore:
    def __init__(self, run_dir: Path) -> None:
        self.dir = run_dir
        self.run_toml = run_dir / "run.toml"
        self.state_json = run_dir / "state.json"
        self.host_json = run_dir / "host.json"
        self.spawned_host_json = run_dir / "host.spawned.json"
        self.metrics = run_dir / "metrics.jsonl"
        self.ledger = run_dir / "chunk_tracker_state.json"
        self.logs = run_dir / "logs"
        self.model = run_dir / "model.safetensors"
        self.environment = run_dir / "environment.json"
        self.resolved = run_dir / "resolved.json"
        self.columns = run_dir / "columns"
        self.data = run_dir / "data"
        self.lock_file = run_dir / "host.lock"

    @property
    def checkpoints(self) -> Path:
        new, old = self.dir / CHECKPOINTS, self.dir / OLD_CHECKPOINTS
        return old if old.is_dir() and not new.is_dir() else new

    @classmethod
    def create(cls, runs_dir: Path, config: RunConfig, run_dir: Path | None = None, name: str = "") -> RunStore:
        """Make a new run's folder with `run.toml` and a `state.json` that says "starting".

        Args:
            runs_dir: The folder of run folders; made if missing.
            config: The run's settings.
            run_dir: Exactly this folder instead of a new one in `runs_dir`; it may exist, but hold no run.
            name: Its name until the user names it; empty: as its folder.

        Raises:
            UsageError: `run_dir` holds a run already.
            PreflightError: Disk full, no permission, path too long, drive missing.
        """
        from core.config.config_file import to_toml

        folder = _new_folder(runs_dir, config.recipe) if run_dir is None else _given_folder(run_dir)
        store = cls(folder)
        with explained(f"{store.logs} could not be made"):
            store.logs.mkdir(exist_ok=True)
        write_atomic(store.run_toml, to_toml(config))
        now = time.time()
        store.write_state(
            RunState(
                run_id=folder.name,
                name=name or folder.name,
                created=now,
                updated=now,
                mode=config.mode,
                devices=config.devices,
                recipe=config.recipe,
                total_steps=config.steps,
            )
        )
        return store

    @classmethod
    def open(cls, run_dir: Path) -> RunStore:
        """Open the run in an existing folder.

        Raises:
            RunNotFoundError: There is no folder, or it holds no run.
            PreflightError: It cannot be looked into.
        """
        with explained(f"{run_dir} could not be read"):
            is_folder = run_dir.is_dir()
            is_run = is_folder and any((run_dir / name).exists() for name in ("run.toml", "state.json"))
        if not is_folder:
            raise RunNotFoundError(f"{run_dir} is not a folder.", "List the runs: rankdeck runs.")
        if not is_run:
            raise RunNotFoundError(
                f"{run_dir} doesn't contain a run: it has neither run.toml nor state.json.",
                "List the runs: rankdeck runs.",
            )
        return cls(run_dir.absolute())

    def config(self) -> RunConfig:
        from core.config.layers import load_config

        return load_config(self.run_toml)

    def stored_state(self) -> RunState:
        return RunState.from_dict(read_json(self.state_json, limit_bytes=MAX_STATE_BYTES), self.state_json)

    def state(self) -> RunState:
        """`state.json` as a reader must take it: "interrupted" when its host is dead; raises as `stored_state`."""
        return self.seen(self.stored_state())

    def seen(self, stored: RunState) -> RunState:
        """`RunState.seen`, with the lock as second opinion.

        When the system clock is stepped, Linux tells other start times for the same processes, and a live host looks
        like a stranger under a recycled pid. Its lock does not.
        """
        seen = self.seen_without_lock(stored)
        if seen.state != INTERRUPTED or not stored.is_live:
            return seen
        return stored if self.is_locked() else self._seen_elsewhere(seen)

    def _seen_elsewhere(self, seen: RunState) -> RunState:
        """Return `seen` with another error where the run is on another machine and only its copy here is stale."""
        try:
            remote = read_remote(self.dir)
        except StateFileError:
            return seen
        if remote is None or not remote.is_there:
            return seen
        error = {
            "title": "The run is not being followed",
            "cause": f"It is on {remote.machine}, and nothing on this computer follows it. It may still be training.",
            "next_step": f"Follow it again: rankdeck attach {self.dir.name}",
        }
        return seen.replace(error=error)

    def seen_without_lock(self, stored: RunState) -> RunState:
        """`seen` for the process that holds the lock itself.

        A host that has not written its name yet is known by the note of the program that started it.
        """
        seen = self._seen(stored)
        if seen.state != INTERRUPTED:
            return seen
        # Its host may have written its name, or its end, and exited in the moment since `stored` was read.
        try:
            newest = self.stored_state()
        except StateFileError:
            return seen
        return seen if newest == stored else self._seen(newest)

    def _seen(self, stored: RunState) -> RunState:
        is_unnamed = stored.state == "starting" and stored.host is None
        spawned = self._spawned_host(stored.attempt) if is_unnamed else None
        if spawned is None:
            return stored.seen()
        return stored if is_alive(spawned) else stored.replace(host=spawned).seen()

    def write_state(self, state: RunState) -> None:
        """Replace `state.json`; raises `PreflightError` when the disk refuses."""
        write_atomic(self.state_json, _json(state.as_dict()))

    def write_spawned_host(self, attempt: int, process: ProcessId) -> None:
        """Note the process that was started to host the attempt; a disk that refuses costs the note, not the run.

        A host enters itself in `state.json` once it is at work, and is its only writer from its first instruction on.
        Until then only the program that spawned it knows whether it lives; hence a file of that program's own.
        """
        with contextlib.suppress(RankdeckError):
            note = {"attempt": attempt, "pid": process.pid, "started": process.started}
            write_atomic(self.spawned_host_json, _json(note), durable=False)

    def _spawned_host(self, attempt: int) -> ProcessId | None:
        try:
            value = read_json(self.spawned_host_json, limit_bytes=MAX_STATE_BYTES)
        except StateFileError:
            return None
        return ProcessId.from_json(value) if isinstance(value, dict) and value.get("attempt") == attempt else None

    def write_host_json(self, port: int, token: str, pid: int, machine: str = "") -> None:
        """Write the host's port and token; only its owner can read the file.

        `machine` is set where several machines share the folder: then the token is kept elsewhere.
        """
        about: dict[str, Any] = {"port": port, "pid": pid}
        if machine:
            write_secret(self.dir, token)
            about["machine"] = machine
        else:
            about["token"] = token
        write_atomic(self.host_json, _json(about), mode=0o600)

    def read_host_json(self) -> HostInfo | None:
        """Read the host's address; None when there is no `host.json`.

        Raises:
            StateFileError: It is damaged, or another user's.
            ConnectionRefusedByHostError: The host is on another machine; says which.
        """
        if not self.host_json.exists():
            return None
        value = read_json(self.host_json, limit_bytes=MAX_STATE_BYTES)
        if isinstance(value, dict):
            port, token, pid = value.get("port"), value.get("token"), value.get("pid")
            if (machine := value.get("machine")) and (token := read_secret(self.dir)) is None:
                raise ConnectionRefusedByHostError(
                    f"The host of run {self.dir.name} is on {machine}, and listens to commands of that machine alone.",
                    f"Run the command on {machine}.",
                    title="The run's host is on another machine",
                )
            if isinstance(port, int) and isinstance(token, str) and isinstance(pid, int) and 0 < port < 65536:
                return HostInfo(port, token, pid)
        raise StateFileError(f"{self.host_json} does not say port, token and pid.", "Stop the run's host and resume.")

    def remove_host_json(self) -> None:
        # A scanner holds it; readers judge by the process, not by this file.
        with contextlib.suppress(OSError):
            self.host_json.unlink(missing_ok=True)
        remove_secret(self.dir)

    def lock(self) -> RunLock:
        """Take the folder for this process and remove half-written files of a killed host.

        Raises:
            RunBusyError: A live host has it.
            LinkError: A place that the run writes to is a link.
        """
        self.refuse_links()
        held = RunLock(self.lock_file)
        remove_temporaries(self.dir, others=(NOTES,))
        for folder in (self.data, *self.data.glob("*/"), self.columns, self.logs, self.checkpoints):
            remove_temporaries(folder, others=(BINS,))
        return held

    def refuse_links(self) -> None:
        """Raise `LinkError` where a run writes in place; a file that is replaced whole would replace the link."""
        for path in (self.metrics, self.lock_file):
            refuse_link(path)
        for folder in (self.logs, self.columns, self.data, self.checkpoints):
            refuse_links_below(folder)

    def is_locked(self) -> bool:
        """Whether a live host holds the folder just now; the operating system is asked, not the clock."""
        return is_held(self.lock_file)


def list_runs(runs_dir: Path) -> list[RunEntry]:
    folders: list[Path] = []
    with (
        explained(f"{runs_dir} could not be read"),
        contextlib.suppress(FileNotFoundError),
        os.scandir(runs_dir) as found,
    ):
        folders = [Path(item.path) for item in found if _may_be_run(item)]
    entries = [entry for folder in folders if (entry := read_entry(folder)) is not None]
    entries.sort(key=lambda entry: (entry.state.created if entry.state else 0.0, entry.path.name), reverse=True)
    return entries


def _may_be_run(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:
        return True


def read_entry(folder: Path) -> RunEntry | None:
    """Read one run for lists; None for a folder without one. An unreadable run has a `problem`."""
    store = RunStore(folder)
    try:
        return RunEntry(folder, store.state())
    except (StateFileError, OSError) as error:
        problem = (
            error.cause if isinstance(error, StateFileError) else explain(error, f"{folder} could not be read").cause
        )
    try:
        folder.stat()
        if not store.state_json.exists() and not store.run_toml.exists():
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = explain(error, f"{folder} could not be read").cause
    return RunEntry(folder, None, problem)


def find_run(runs_dir: Path, text: str) -> RunStore:
    """Find a run by its folder's path, its id, its name, or the unique start of its id; raises `RunNotFoundError`."""
    text = text.strip()
    if not text:
        raise RunNotFoundError("No run was given.", "Give one. To list runs: rankdeck runs")
    path = parse_path(text)
    if path is not None and path.is_dir() and (path / "state.json").exists() | (path / "run.toml").exists():
        return RunStore.open(path)
    if path is not None and path.name in _OWN_FILES and path.exists():
        return RunStore.open(path.parent)
    entries = list_runs(runs_dir)
    exact = [e for e in entries if text in (e.path.name, e.state.run_id if e.state else "")]
    exact = exact or [e for e in entries if text in (_given_name(e.path), e.state.name if e.state else "")]
    matches = exact or [e for e in entries if e.path.name.startswith(text)]
    if len(matches) == 1:
        return RunStore.open(matches[0].path)
    if matches:
        names = ", ".join(e.path.name for e in matches[:5])
        raise RunNotFoundError(
            f"{text!r:.100} means {len(matches)} runs: {names}{', …' if len(matches) > 5 else ''}.",
            "Give more of its name.",
            title="Several runs match that name",
        )
    raise RunNotFoundError(f"No run in {runs_dir} matches {text!r:.100}.", "List the runs: rankdeck runs.")


def _given_name(folder: Path) -> str:
    try:
        return read_notes(folder).name
    except (StateFileError, OSError):
        return ""


def _new_folder(runs_dir: Path, recipe: str) -> Path:
    with explained(f"{runs_dir} could not be made"):
        runs_dir.mkdir(parents=True, exist_ok=True)
    for _ in range(_NAMES_TRIED):
        folder = runs_dir.absolute() / new_run_id(recipe)
        with explained(f"{folder} could not be made"), contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise UsageError(
        f"No free name for a run was found in {runs_dir}.", "Choose another folder.", option="--run-dir PATH"
    )


def new_run_id(recipe: str) -> str:
    """A name for a new run's folder: "minigpt-20260102-030405-a1b2"."""
    base = re.sub(r"[^\w-]+", "-", Path(recipe).name, flags=re.ASCII).strip("-_")[:32] or "run"
    return f"{base}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def _given_folder(run_dir: Path) -> Path:
    folder = run_dir.expanduser().absolute()
    check_new_run_dir(folder)
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_new_run_dir(run_dir: Path) -> None:
    if run_dir.exists() and not run_dir.is_dir():
        raise UsageError(f"{run_dir} is a file, not a folder.", "Choose another folder.", option="--run-dir PATH")
    held = next((name for name in _OWN_FILES if (run_dir / name).exists()), None)
    if held is not None:
        raise UsageError(
            f"{run_dir} already contains a run ({held}).",
            f'Resume it: rankdeck resume "{run_dir}"; or choose another folder: --run-dir.',
            title="That folder is in use",
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
