"""Starting there: starts a run on another machine, and makes the folder here that follows it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.config_file import to_toml
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.launch.command_line import TrainRequest
from core.launch.preflight import check_folder
from core.machines.answers import Started
from core.machines.follow import start_following
from core.machines.machine import THERE, Machine, UnreachableError
from core.machines.run_copy import read_settings, taken_settings
from core.machines.send import Report, Sender, below, check_sendable
from core.machines.session import serving
from core.recipes.outside_code import outside_code
from core.run_folder.naming import first_name
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.remote_run import RemoteRun, write_remote
from core.run_folder.store import RunStore, check_new_run_dir, new_run_id

START_LIMIT_S: Final = 300.0  # a check there reads a whole dataset
_TRIES: Final = 3
_AGAIN_AFTER_S: Final = 1.0
UNANSWERED: Final = (
    "The connection to {name} broke before it answered. The run is followed as soon as {name} can be reached; if it "
    "was not started, that is said then."
)
_COPY_BYTES: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class StartedThere:
    """A run that was started on another machine.

    Attributes:
        store: Its copy here.
        devices: Their names there.
        mode: In which it trains.
        notes: What the user should know.
    """

    store: RunStore
    devices: tuple[str, ...]
    mode: str
    notes: tuple[str, ...]


def start_there(
    machine: Machine, request: TrainRequest, runs_dir: Path, report: Report, name: str = ""
) -> StartedThere:
    """Sends a run's settings, code and data, starts its host there, and what follows it here.

    Args:
        machine: Where.
        request: What is asked; `run_dir` and `runs_dir` in it are about the copy here.
        runs_dir: Where the copy's folder is made.
        report: Hears of what is sent.
        name: What the user calls the run.

    Raises:
        UsageError, PreflightError: It cannot be sent, or is refused there; nothing was started, and nothing is here.
        UnreachableError: There is no connection.
    """
    check_sendable(request.config)
    notes = RunNotes().renamed(name)
    if request.run_dir is not None:
        check_new_run_dir(request.run_dir)
    check_folder(request.run_dir or runs_dir, _COPY_BYTES)
    run_id = request.run_dir.name if request.run_dir is not None else new_run_id(request.config.recipe)
    count = None if request.count is None else [request.count.number, request.count.flag]
    start = _Start(machine, request.config, run_id, count)
    answer = start.ask(report)
    config = request.config.replace(dataset_file=request.config.dataset_file.strip().removeprefix(THERE))
    with contextlib.suppress(RankdeckError, ValueError):  # what cannot be read of its settings is not taken
        config = taken_settings(config, read_settings(answer.config))
    first = answer.name or first_name(request.recipe.title)
    store = RunStore.create(runs_dir, config, request.run_dir or runs_dir / run_id, first)
    write_remote(store.dir, RemoteRun(machine.name, answer.run_dir))
    if notes.name:
        write_notes(store.dir, notes)
    if (code := outside_code(config)) is not None:  # named by the person who starts it, so that resuming need not ask
        code.remember()
    start_following(store)
    return StartedThere(store, answer.devices, answer.mode, answer.notes)


@dataclass(slots=True)
class _Start:
    """A start that is asked for until it is answered: who asks again gets the answer that was lost."""

    machine: Machine
    config: RunConfig
    run_id: str
    count: list[Any] | None
    _sent: str = ""
    _run_dir: str = ""

    def ask(self, report: Report) -> Started:
        """The answer. Where none comes after all was sent, the run may have been started: then an answer that says so,
        and what follows the run finds out."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._ask_once(report)
            except UnreachableError:
                if not self._sent:  # nothing can have been started
                    raise
                if tries_left:
                    time.sleep(_AGAIN_AFTER_S)
        return Started(self._run_dir, self._sent, (UNANSWERED.format(name=self.machine.name),))

    def _ask_once(self, report: Report) -> Started:
        with serving(self.machine) as session:
            sender = Sender(session, report)
            config = to_toml(sender.send(self.config))
            report.progress(f"Starting on {self.machine.name}")
            self._run_dir = below(session.runs_dir, Path(self.run_id))
            self._sent = config
            question = {"op": "start", "run_id": self.run_id, "count": self.count, "config": config}
            return session.ask(question, Started, START_LIMIT_S)
