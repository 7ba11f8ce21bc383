"""Moving a run: brings it here, or sends it to another machine, before an ordinary resume on that side."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.store import MANIFEST, CheckpointStore
from core.config.config_file import to_toml
from core.errors import RunBusyError, RunNotFoundError, UsageError
from core.files.atomic import explained, write_atomic
from core.held_files import open_binary
from core.machines.answers import Found, Place, Planned
from core.machines.fetch import fetch_checkpoint
from core.machines.follow import start_following
from core.machines.machine import THERE, Machine
from core.machines.machine_list import find_machine, list_machines
from core.machines.run_copy import catch_up, read_state
from core.machines.run_stream import kept_files
from core.machines.send import Report, Sender
from core.machines.session import Session, serving
from core.machines.starting import START_LIMIT_S
from core.machines.tree import Tree, tree_file
from core.metrics.metrics_file import whole_bytes
from core.paths import CHECKPOINTS
from core.recipes.outside_code import outside_code
from core.resume.own_run import changed_config
from core.resume.plan import NOT_STARTED_HERE, PlanSummary
from core.run_folder.remote_run import RemoteRun, read_remote, write_remote
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, find_run

_BLOCK: Final = 1 << 20
# In the order in which they are put into the folder there: `state.json`, which says that there is a run, comes last.
_SENT: Final = ("metrics.jsonl", "attempt.toml", "environment.json", "chunk_tracker_state.json", "state.json")


def machine_of(store: RunStore) -> Machine | None:
    """The machine that the newest state of a run is on; None: this computer, or it was removed from the list.

    Raises:
        StateFileError: A file is damaged.
    """
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        return None
    return next((one for one in list_machines() if one.name.lower() == remote.machine.lower()), None)


def brought_here(text: str, runs_dir: Path, changes: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Fetches the files that a resume here needs from the run's machine, if it is another one.

    If that machine was removed from the list, it is gone for good: then what was fetched before is all there is.

    Args:
        text: A run, or a state file.
        runs_dir: Where runs are looked up.
        changes: As `core.resume.planner.plan_resume` takes them.
        report: Hears of what is fetched.

    Returns:
        The changes; GPUs of another machine are none of this one, so the devices are chosen again.

    Raises:
        RunBusyError: It trains there.
        RankdeckError: The machine cannot be reached; nothing can tell what the run does.
    """
    try:
        store = find_run(runs_dir, text)
    except RunNotFoundError:
        return dict(changes)  # a state file; or the planner says what is missing
    remote, machine = read_remote(store.dir), machine_of(store)
    if remote is None or not remote.is_there:
        return dict(changes)
    if machine is None:
        report.say(f"{remote.machine} was removed from the machines. What is here of the run is used.")
    else:
        _fetch(store, remote, changes, report)
    return _moved_changes(store, changes)


def now_here(store: RunStore) -> None:
    """Notes that the newest state of the run is here from now on; raises as `write_remote`."""
    remote = read_remote(store.dir)
    if remote is not None and remote.is_there:
        write_remote(store.dir, remote.replace(is_there=False))


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The plan for resuming a run on another machine, or here if it is on another machine.

    Attributes:
        run_dir: The run here.
        machine: Where it will train; None: on this computer.
        changes: As they were asked for.
        shown: What a person reads.
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
    """What resuming a run on a machine would do; None: here, where the run is on another one.

    A run that stays on its machine is planned there. Of one that moves it is said what is brought where: the plan is
    made where it arrives, and nothing is sent or fetched to show it.

    Raises:
        RunBusyError: It trains.
        RankdeckError: The machine cannot be reached, or refuses.
    """
    source, code = machine_of(store), outside_code(store.config())
    accepted = code is None or accept_code or code.is_known
    if source is not None and source == machine:
        shown = _ask_to_resume(machine, store, changes, accept_code=accepted)
        lines = (*shown.lines[:1], f"It continues on {machine.name}, where it is.", *shown.lines[1:])
        shown = dataclasses.replace(shown, lines=lines, code_accepted=accepted and shown.code_accepted)
        return MovePlan(store.dir, machine, dict(changes), shown)
    state = store.state()
    if state.is_live:
        raise _is_live(store, None if source is None else source.name, state)
    code_lines = () if code is None or accepted else (*code.lines, NOT_STARTED_HERE)
    summary = PlanSummary(
        lines=(*_moving_lines(source, machine, changes), *code_lines),
        steps=store.config().steps,
        mode_then=state.mode or "",
        code_accepted=accepted,
    )
    return MovePlan(store.dir, machine, dict(changes), summary)


def _moving_lines(source: Machine | None, machine: Machine | None, changes: Mapping[str, Any]) -> list[str]:
    number = changes.get("checkpoint")
    checkpoint = "its newest checkpoint" if number is None else f"checkpoint {number}"
    lines = [f"It continues on {'this computer' if machine is None else machine.name}."]
    if source is not None:
        lines.append(f"Fetched from {source.name} first: metrics and {checkpoint}.")
    if machine is not None:
        lines.append(f"Sent to {machine.name}, unless it is there already: settings, code, data and {checkpoint}.")
    return lines


def _ask_to_resume(machine: Machine, store: RunStore, changes: Mapping[str, Any], *, accept_code: bool) -> PlanSummary:
    """The plan of the machine that the run is on."""
    remote = read_remote(store.dir)
    assert remote is not None
    with serving(machine) as session:
        return _resume(session, remote, changes, accept_code=accept_code, dry_run=True)


def _resume(
    session: Session, remote: RemoteRun, changes: Mapping[str, Any], *, accept_code: bool, dry_run: bool = False
) -> PlanSummary:
    question = {"op": "resume", "run_dir": remote.run_dir, "changes": dict(changes), "accept_code": accept_code}
    return session.ask({**question, "dry_run": dry_run}, Planned, START_LIMIT_S).plan


def resume_there(
    machine: Machine, store: RunStore, changes: Mapping[str, Any], report: Report, *, accept_code: bool = False
) -> list[str]:
    """Resumes a run on another machine; what it lacks there is sent first, by hashes.

    Args:
        machine: Where.
        store: The run here.
        changes: As `core.resume.planner.plan_resume` takes them.
        report: Hears of what is sent.
        accept_code: The person agrees to what the run names there, where it continues on the machine that it is on.
            A run that is sent there has the settings of the one here.

    Returns:
        What happens, one sentence a line.

    Raises:
        RunBusyError: It trains, here or there.
        UsageError: It was continued in both places, or cannot be resumed so.
        RankdeckError: A machine cannot be reached, or refuses.
    """
    remote = read_remote(store.dir)
    is_elsewhere = remote is not None and remote.is_there
    stays = remote is not None and is_elsewhere and remote.machine.lower() == machine.name.lower()
    if remote is not None and is_elsewhere and not stays and machine_of(store) is not None:
        _fetch(store, remote, changes, report)
    with store.lock():
        with serving(machine) as session:
            if remote is not None and stays:
                if (state := catch_up(session, store, remote)).is_live:
                    raise _is_live(store, machine.name, state)
                plan = _resume(session, remote, changes, accept_code=accept_code)
            else:
                there = _moved_changes(store, changes)
                remote = _send_run(session, store, there, report)
                plan = _resume(session, remote, there, accept_code=True)
        write_remote(store.dir, remote.replace(is_there=True))
        _keep_settings(store, changes)
        with explained(f"{store.model} could not be removed"):  # it is that of an earlier end
            store.model.unlink(missing_ok=True)
        state = store.stored_state()
        fresh: dict[str, Any] = {"host": None, "phase": "", "error": None, "exit_code": None, "trouble": None}
        store.write_state(state.replace(state="starting", attempt=state.attempt + 1, updated=time.time(), **fresh))
    start_following(store)
    return list(plan.lines)


def _fetch(store: RunStore, remote: RemoteRun, changes: Mapping[str, Any], report: Report) -> None:
    """Brings metrics, state and a checkpoint here; raises as `brought_here`."""
    with store.lock(), serving(find_machine(remote.machine)) as session:
        state = catch_up(session, store, remote)
        if state.is_live:
            raise _is_live(store, remote.machine, state)
        fetch_checkpoint(session, store, remote, _asked(changes), report)


def _moved_changes(store: RunStore, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a run that is resumed on another machine than before: GPUs of one are none of the other."""
    if "devices" in changes or all(name.startswith("cpu") for name in store.config().devices):
        return dict(changes)
    return {**changes, "devices": "auto"}


def _keep_settings(store: RunStore, changes: Mapping[str, Any]) -> None:
    """Records here what was asked for: of what a machine says of a run's settings, not all is taken (`RunCopy`)."""
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
    """Sends what a resume there needs; returns where the run is then. Data that is named there is no change any more.

    The files are put into the folder there in the order of the list.
    """
    config = store.config()
    if "dataset_file" in changes:
        config = config.replace(dataset_file=str(changes.pop("dataset_file")))
    check_not_continued(session, store)
    config = Sender(session, report).send(config)
    kept = [(name, store.dir / name) for name in (*kept_files(store.dir), *_SENT)]
    with tempfile.TemporaryDirectory(prefix="rankdeck-", ignore_cleanup_errors=True) as folder:
        run_toml = Path(folder) / "run.toml"
        write_atomic(run_toml, to_toml(config), durable=False)
        named = [*_checkpoint_files(store, _asked(changes)), *kept, ("run.toml", run_toml)]
        tree = Tree("run", tuple(tree_file(name, source) for name, source in named if source.is_file()))
        report.progress(f"Sending the run to {session.machine.name}")
        session.send_files(tree)
    listed = [[file.path, file.sha256, file.size] for file in tree.files]
    answer = session.ask({"op": "place", "run_id": store.dir.name, "files": listed}, Place)
    return RemoteRun(session.machine.name, answer.path)


def _checkpoint_files(store: RunStore, asked: str | None) -> list[tuple[str, Path]]:
    """A checkpoint's files, its manifest last: until then there is no checkpoint."""
    kept = store.checkpoints
    found = choose_checkpoint(kept, asked, store.dir.name) if asked else CheckpointStore(kept).newest_valid()[0]
    if found is None:
        return []
    names = (*(file.name for file in found.files), MANIFEST)
    return [(f"{CHECKPOINTS}/{found.number}/{name}", found.folder / name) for name in names]


def check_not_continued(session: Session, store: RunStore) -> None:
    """Refuses a run whose folder there has lines that are not here: both would be its newest state.

    Raises:
        RunBusyError: It trains there.
        UsageError: It was continued there.
    """
    there = session.ask({"op": "find", "run_id": store.dir.name}, Found)
    if there.run_dir is None:
        return
    name, size = session.machine.name, there.metrics_bytes
    if there.live:
        raise _is_live(store, name, read_state(session, there.state))
    if size > whole_bytes(store.metrics) or _beginning_hash(store.metrics, size) != there.metrics_sha256:
        raise UsageError(
            f"{store.dir.name} was continued on {name} too: its metrics there are not the beginning of those here.",
            f"Resume it here, or remove {there.run_dir} on {name}.",
            title="The run was continued in two places",
        )


def _beginning_hash(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    if size:
        with explained(f"{path} could not be read"), open_binary(path) as file:
            while size and (block := file.read(min(size, _BLOCK))):
                digest.update(block)
                size -= len(block)
    return digest.hexdigest()


def _is_live(store: RunStore, machine: str | None, state: RunState) -> RunBusyError:
    return RunBusyError(
        f"{store.dir.name} is {state.state}{'' if machine is None else f' on {machine}'}.",
        f"Watch it: rankdeck attach {store.dir.name}; or stop it first: rankdeck stop {store.dir.name}",
    )
