"""Runs on other machines: starts one there, and brings one here or sends it there before an ordinary resume."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.store import MANIFEST, CheckpointStore
from core.config.config_file import to_toml
from core.errors import RunBusyError, RunNotFoundError
from core.files.atomic import explained, write_atomic
from core.launch.command_line import TrainRequest
from core.launch.preflight import check_folder
from core.machines.answers import Place, Resumed, Started
from core.machines.fetch import Fetching
from core.machines.follow import start_following
from core.machines.machine import THERE, Machine, Report, UnreachableError
from core.machines.machine_list import find_machine, list_machines
from core.machines.run_copy import catch_up
from core.machines.run_files import METRICS, kept_files
from core.machines.send import Sender, below, check_sendable
from core.machines.session import Session, serving
from core.machines.tree import Tree, tree_file
from core.paths import CHECKPOINTS
from core.recipes.outside_code import check_accepted, outside_code
from core.resume.own_run import changed_config
from core.resume.plan import NOT_STARTED_HERE, PlanSummary
from core.run_folder.naming import first_name
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.remote_run import RemoteRun, read_remote, write_remote
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, check_new_run_dir, find_run, new_run_id

START_LIMIT_S: Final = 300.0  # a check there reads a whole dataset
UNANSWERED: Final = (
    "The connection to {name} broke before it answered. The run is followed as soon as {name} can be reached; if it "
    "was not started, that is said then."
)
_COPY_BYTES: Final = 50_000_000
# In the order in which they are put into the folder there: `state.json`, which says that there is a run, comes last.
_SENT: Final = (METRICS, "attempt.toml", "environment.json", "chunk_tracker_state.json", "state.json")


def start_there(
    machine: Machine, request: TrainRequest, runs_dir: Path, report: Report, name: str = ""
) -> tuple[RunStore, tuple[str, ...]]:
    """Send a run's settings, code and data, start its host there, and its follower here.

    Args:
        machine: The machine.
        request: The run; `run_dir` and `runs_dir` in it are about the copy here.
        runs_dir: The folder in which the copy is made.
        report: Receives the progress.
        name: The user's name for the run.

    Returns:
        Its copy here, and notes for the user.

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
    with serving(machine) as session:
        there = to_toml(Sender(session, report).send(request.config))
        report(f"Starting on {machine.name}")
        question = {"op": "start", "run_id": run_id, "count": count, "config": there}
        try:
            answer = session.ask(question, Started, START_LIMIT_S)
        except UnreachableError:  # it may have been started all the same: its follower finds out
            answer = Started(below(session.runs_dir, Path(run_id)), (UNANSWERED.format(name=machine.name),))
    config = request.config.replace(dataset_file=request.config.dataset_file.strip().removeprefix(THERE))
    store = RunStore.create(runs_dir, config, request.run_dir or runs_dir / run_id, first_name(request.recipe.title))
    write_remote(store.dir, RemoteRun(machine.name, answer.run_dir))
    if notes.name:
        write_notes(store.dir, notes)
    # Named by the person who starts it, so that resuming need not ask.
    if (code := outside_code(config)) is not None:
        code.remember()
    start_following(store)
    return store, answer.notes


def machine_of(store: RunStore) -> Machine | None:
    """Find the machine that the newest state of a run is on; None: this computer, or one removed from the list.

    Raises:
        StateFileError: A file is damaged.
    """
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        return None
    return next((one for one in list_machines() if one.name.lower() == remote.machine.lower()), None)


def brought_here(text: str, runs_dir: Path, changes: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Fetch the files that a resume here needs from the run's machine, if it is another one.

    If that machine was removed from the list, it is gone for good: then the checkpoints here are used.

    Args:
        text: A run, or a state file.
        runs_dir: The folder in which runs are looked up.
        changes: Settings as `core.resume.planner.plan_resume` takes them.
        report: Receives the progress.

    Returns:
        The changes; GPUs of another machine are none of this one, so the devices are chosen again.

    Raises:
        RunBusyError: It trains there.
        RankdeckError: The machine cannot be reached; nothing can tell what the run does.
    """
    try:
        store = find_run(runs_dir, text)
    except RunNotFoundError:
        # A state file; or the planner says what is missing.
        return dict(changes)
    remote, machine = read_remote(store.dir), machine_of(store)
    if remote is None or not remote.is_there:
        return dict(changes)
    if machine is None:
        report(f"{remote.machine} was removed from the machines. The checkpoints here are used.")
    else:
        _fetch(store, remote, changes, report)
    return _moved_changes(store, changes)


def now_here(store: RunStore) -> None:
    """Note that the newest state of the run is here from now on; raises as `write_remote`."""
    remote = read_remote(store.dir)
    if remote is not None and remote.is_there:
        write_remote(store.dir, remote.replace(is_there=False))


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The plan for resuming a run on another machine, or here if it is on another machine.

    Attributes:
        run_dir: The run here.
        machine: The machine on which it will train; None: this computer.
        changes: The changes of settings that were asked for.
        shown: The plan as a person reads it.
    """

    run_dir: Path
    machine: Machine | None
    changes: Mapping[str, Any]
    shown: PlanSummary

    def summary(self) -> PlanSummary:
        return self.shown


def plan_move(
    store: RunStore, machine: Machine | None, changes: Mapping[str, Any], *, accept_code: bool = False
) -> MovePlan:
    """Make the plan for resuming a run on a machine; None: here, where the run is on another one.

    It says what is brought where. The settings are checked where the run arrives; nothing is sent or fetched for it.

    Raises:
        RunBusyError: It trains.
        StateFileError: A file is damaged.
    """
    source, code, state = machine_of(store), outside_code(store.config()), store.state()
    if state.is_live:
        raise _is_live(store, None if source is None else source.name, state)
    accepted = code is None or accept_code or code.is_known
    code_lines = () if code is None or accepted else (*code.lines, NOT_STARTED_HERE)
    summary = PlanSummary((*_moving_lines(source, machine, changes), *code_lines), code_accepted=accepted)
    return MovePlan(store.dir, machine, dict(changes), summary)


def _moving_lines(source: Machine | None, machine: Machine | None, changes: Mapping[str, Any]) -> list[str]:
    if machine is not None and source == machine:
        return [f"It continues on {machine.name}, where it is."]
    number = changes.get("checkpoint")
    checkpoint = "its newest checkpoint" if number is None else f"checkpoint {number}"
    lines = [f"It continues on {'this computer' if machine is None else machine.name}."]
    if source is not None:
        lines.append(f"Fetched from {source.name} first: metrics and {checkpoint}.")
    if machine is not None:
        lines.append(f"Sent to {machine.name}, unless it is there already: settings, code, data and {checkpoint}.")
    return lines


def resume_there(
    machine: Machine, store: RunStore, changes: Mapping[str, Any], report: Report, *, accept_code: bool = False
) -> list[str]:
    """Resume a run on another machine; what it lacks there is sent first, by hashes.

    Args:
        machine: The machine.
        store: The run here.
        changes: Settings as `core.resume.planner.plan_resume` takes them.
        report: Receives the progress.
        accept_code: The person agrees to what the run names. Where it runs they are not asked again.

    Returns:
        The plan, one sentence a line.

    Raises:
        OutsideCodeError: The person has not agreed.
        RunBusyError: It trains, here or there.
        UsageError: It was continued in both places, or cannot be resumed so.
        RankdeckError: A machine cannot be reached, or refuses.
    """
    if (code := outside_code(store.config())) is not None and not code.is_known:
        check_accepted(code, accept_code)
    remote = read_remote(store.dir)
    is_elsewhere = remote is not None and remote.is_there
    stays = remote is not None and is_elsewhere and remote.machine.lower() == machine.name.lower()
    if remote is not None and is_elsewhere and not stays and machine_of(store) is not None:
        _fetch(store, remote, changes, report)
    with store.lock():
        with serving(machine) as session:
            if remote is not None and stays:
                there = dict(changes)
                if (state := catch_up(session, store, remote)).is_live:
                    raise _is_live(store, machine.name, state)
            else:
                there = _moved_changes(store, changes)
                remote = _send_run(session, store, there, report)
            question = {"op": "resume", "run_dir": remote.run_dir, "changes": there}
            lines = session.ask(question, Resumed, START_LIMIT_S).lines
        write_remote(store.dir, remote.replace(is_there=True))
        _keep_settings(store, changes)
        with explained(f"{store.model} could not be removed"):  # it is that of an earlier end
            store.model.unlink(missing_ok=True)
        state = store.stored_state()
        fresh: dict[str, Any] = {"host": None, "phase": "", "error": None, "exit_code": None, "trouble": None}
        store.write_state(state.replace(state="starting", attempt=state.attempt + 1, updated=time.time(), **fresh))
    start_following(store)
    return list(lines)


def _fetch(store: RunStore, remote: RemoteRun, changes: Mapping[str, Any], report: Report) -> None:
    """Bring metrics, state and a checkpoint here; raises as `brought_here`."""
    with store.lock(), serving(find_machine(remote.machine)) as session:
        state = catch_up(session, store, remote)
        if state.is_live:
            raise _is_live(store, remote.machine, state)
        Fetching(session, store, remote, report).fetch(_asked(changes))


def _moved_changes(store: RunStore, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the changes of a run that moves: GPUs of one machine are none of the other."""
    if "devices" in changes or all(name.startswith("cpu") for name in store.config().devices):
        return dict(changes)
    return {**changes, "devices": "auto"}


def _keep_settings(store: RunStore, changes: Mapping[str, Any]) -> None:
    """Record here what was asked for: of what a machine says of a run's settings, not all is taken (`RunCopy`)."""
    given = {name: value for name, value in changes.items() if name != "checkpoint"}
    config = changed_config(store.config(), given, store.dir)
    config = config.replace(dataset_file=config.dataset_file.removeprefix(THERE))
    write_atomic(store.run_toml, to_toml(config))
    if (code := outside_code(config)) is not None:
        code.remember()


def _asked(changes: Mapping[str, Any]) -> str | None:
    asked = changes.get("checkpoint")
    return None if asked is None else str(asked).strip()


def _send_run(session: Session, store: RunStore, changes: dict[str, Any], report: Report) -> RemoteRun:
    """Send what a resume there needs, and return where the run is then; take a dataset there out of the changes."""
    config = store.config()
    if "dataset_file" in changes:
        config = config.replace(dataset_file=str(changes.pop("dataset_file")))
    config = Sender(session, report).send(config)
    kept = [(name, store.dir / name) for name in (*kept_files(store.dir), *_SENT)]
    with tempfile.TemporaryDirectory(prefix="rankdeck-", ignore_cleanup_errors=True) as folder:
        run_toml = Path(folder) / "run.toml"
        write_atomic(run_toml, to_toml(config), durable=False)
        named = [*_checkpoint_files(store, _asked(changes)), *kept, ("run.toml", run_toml)]
        tree = Tree("run", tuple(tree_file(name, source) for name, source in named if source.is_file()))
        report(f"Sending the run to {session.machine.name}")
        session.send_files(tree, session.missing(tree))
    listed = [[file.path, file.sha256, file.size] for file in tree.files]
    answer = session.ask({"op": "place", "run_id": store.dir.name, "files": listed}, Place)
    return RemoteRun(session.machine.name, answer.path)


def _checkpoint_files(store: RunStore, asked: str | None) -> list[tuple[str, Path]]:
    """List a checkpoint's files, its manifest last: until then there is no checkpoint."""
    kept = store.checkpoints
    found = choose_checkpoint(kept, asked, store.dir.name) if asked else CheckpointStore(kept).newest_valid()[0]
    if found is None:
        return []
    names = (*(file.name for file in found.files), MANIFEST)
    return [(f"{CHECKPOINTS}/{found.number}/{name}", found.folder / name) for name in names]


def _is_live(store: RunStore, machine: str | None, state: RunState) -> RunBusyError:
    return RunBusyError(
        f"{store.dir.name} is {state.state}{'' if machine is None else f' on {machine}'}.",
        f"Watch it: rankdeck attach {store.dir.name}; or stop it first: rankdeck stop {store.dir.name}",
    )
