"""Starts, stops and resumes runs through `core.client`, off the GUI thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Signal

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError, RunBusyError
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from core.launch.resolved import ResolvedRun
    from core.machine.devices import Device
    from core.machines.machine import Machine
    from core.machines.moving import MovePlan
    from core.resume.plan import ResumePlan


HOST_ENDS_WITHIN_S: Final = 15.0
BUSY_POLL_S: Final = 0.1


class LaunchController(QObject):
    """Starts, stops and resumes runs, one at a time.

    Imports stand where they are used, in the background: the window opens without them.

    Signals:
        busy_changed: What is being done ("starting a run"), or empty.
        started: The folder of a run that was started or resumed.
        noted: Things to know about a run that was started, though they stop nothing.
        stop_asked: The folder of a run whose host took note.
        planned: A `ResumePlan`, or a `MovePlan` where another machine has part in it.
        progressed: What is sent to another machine, or fetched from it, as a sentence.
    """

    busy_changed = Signal(str)
    started = Signal(object)
    noted = Signal(object)
    start_failed = Signal(object)
    stop_asked = Signal(object)
    stop_failed = Signal(object)
    planned = Signal(object)
    plan_failed = Signal(object)
    progressed = Signal(str)

    def __init__(self, runner: OperationRunner, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self.runs_dir = runs_dir
        self.busy = ""

    def start(self, run: ResolvedRun, name: str = "") -> None:
        """Checks everything that can be known beforehand, then starts the run's host; `name` goes into its notes."""
        runs_dir = self.runs_dir

        def work() -> tuple[Path, tuple[str, ...]]:
            from core import client
            from core.launch.mode import NO_MODE
            from core.launch.preflight import check
            from core.run_folder.early_host import EarlyHost

            with EarlyHost() as host:
                checked = check(_with_absolute_options(run), runs_dir)
                store = client.start_run(checked.run.config, runs_dir, name=name, resolved=checked.run, host=host)
            return store.dir, tuple(note for note in checked.notes if not note.startswith(NO_MODE))

        self._begin("starting a run", work, self.start_failed.emit)

    def start_there(self, machine: Machine, run: ResolvedRun, name: str = "") -> None:
        """Sends a run to another machine and starts it there; its own Rankdeck checks it."""
        runs_dir = self.runs_dir

        def work() -> tuple[Path, tuple[str, ...]]:
            from core.launch.command_line import TrainRequest
            from core.machines.moving import start_there

            absolute = _with_absolute_options(run)
            request = TrainRequest(absolute.config, absolute.recipe)
            store, notes = start_there(machine, request, runs_dir, self.progressed.emit, name)
            return store.dir, notes

        self._begin(f"starting a run on {machine.name}", work, self.start_failed.emit)

    def stop(self, run_dir: Path, now: bool = False) -> None:
        """Asks a run's host to stop it; `now` leaves out the checkpoint."""

        def work() -> None:
            from core import client

            store = RunStore.open(run_dir)
            try:
                client.stop_run(store, now=now)
            except RankdeckError:
                if store.state().is_live:
                    # Otherwise it has ended by itself in the meantime.
                    raise

        self._runner.run(Operation(work, lambda _: self.stop_asked.emit(run_dir), self.stop_failed.emit))

    def plan(
        self,
        text: str,
        changes: Mapping[str, Any],
        available: Sequence[Device],
        machine: Machine | None = None,
    ) -> None:
        """Plans a resume; a newer request makes an older one's answer void.

        Args:
            text: A run, or a state file.
            changes: As for `plan_resume`; `accept_code` among them: the person trusts the run's code.
            available: This machine's devices.
            machine: Where it will train; None: on this computer.
        """
        runs_dir, devices, given = self.runs_dir, tuple(available), dict(changes)

        def work() -> ResumePlan | MovePlan:
            from core.machines.moving import plan_move
            from core.resume.planner import plan_resume

            accepted = bool(given.pop("accept_code", False))
            store = _moving(text, runs_dir, machine)
            if store is not None:
                return plan_move(store, machine, given, accept_code=accepted)
            return plan_resume(text, runs_dir, given, available=devices or None, accept_code=accepted)

        self._runner.run(Operation(work, self.planned.emit, self.plan_failed.emit, topic="plan"))

    def resume(self, plan: ResumePlan | MovePlan) -> None:
        def work() -> tuple[Path, tuple[str, ...]]:
            from core.machines.moving import MovePlan

            store = self._moved(plan) if isinstance(plan, MovePlan) else _resumed_here(plan)
            return store.dir, ()

        self._begin("resuming a run", work, self.plan_failed.emit)

    def _moved(self, plan: MovePlan) -> RunStore:
        from core.machines.moving import brought_here, resume_there
        from core.resume.planner import plan_resume

        store, accepted = RunStore(plan.run_dir), plan.shown.code_accepted
        if plan.machine is None:
            changes = brought_here(str(store.dir), self.runs_dir, plan.changes, self.progressed.emit)
            return _resumed_here(plan_resume(str(store.dir), self.runs_dir, changes, accept_code=accepted))
        resume_there(plan.machine, store, plan.changes, self.progressed.emit, accept_code=accepted)
        return store

    def resume_with(
        self,
        text: str,
        changes: Mapping[str, Any],
        available: Sequence[Device],
        say: Callable[[RankdeckError], None],
    ) -> None:
        """Plans and resumes in one. `say` shows an error; the other arguments are those of `plan`."""
        runs_dir, devices, given = self.runs_dir, tuple(available), dict(changes)

        def work() -> tuple[Path, tuple[str, ...]]:
            from core.machines.moving import machine_of, resume_there
            from core.resume.planner import plan_resume
            from core.run_folder.store import find_run

            store = find_run(runs_dir, text)
            deadline = time.monotonic() + HOST_ENDS_WITHIN_S
            while True:
                try:
                    machine = machine_of(store)
                    if machine is None:
                        _resumed_here(plan_resume(text, runs_dir, given, available=devices or None))
                    else:  # it stays where it is
                        resume_there(machine, store, given, self.progressed.emit)
                    return store.dir, ()
                except RunBusyError:  # its host has said that the run is over, and is still ending
                    if time.monotonic() >= deadline:
                        raise
                time.sleep(BUSY_POLL_S)

        self._begin("resuming a run", work, say)

    def _begin(
        self, busy: str, work: Callable[[], tuple[Path, tuple[str, ...]]], say: Callable[[RankdeckError], None]
    ) -> None:
        def failed(error: RankdeckError) -> None:
            self._set_busy("")
            say(error)

        if not self.busy:
            self._set_busy(busy)
            self._runner.run(Operation(work, self._on_started, failed))

    def _on_started(self, outcome: tuple[Path, tuple[str, ...]]) -> None:
        run_dir, notes = outcome
        self._set_busy("")
        self.started.emit(run_dir)
        if notes:
            self.noted.emit(notes)

    def _set_busy(self, what: str) -> None:
        self.busy = what
        self.busy_changed.emit(what)


def _moving(text: str, runs_dir: Path, machine: Machine | None) -> RunStore | None:
    """Return the run that `text` names, where it or its devices are another machine's."""
    from core.errors import RunNotFoundError
    from core.machines.moving import machine_of
    from core.run_folder.store import find_run

    try:
        store = find_run(runs_dir, text)
    except RunNotFoundError:
        if machine is not None:
            raise
        # A state file; or the planner says what is missing.
        return None
    return store if machine is not None or machine_of(store) is not None else None


def _resumed_here(plan: ResumePlan) -> RunStore:
    from core import client
    from core.machines.moving import now_here

    store = client.resume_run(plan)
    now_here(store)
    return store


def _with_absolute_options(run: ResolvedRun) -> ResolvedRun:
    """Make a script's paths absolute: its host works in another folder."""
    from core.recipes.user_script import RECIPE, with_absolute_places

    if run.recipe.name != RECIPE:
        return run
    config = run.config
    return replace(run, config=config.replace(options=with_absolute_places(config.options, [Path.cwd()])))
