"""Moving a run: what has to be here before it is resumed here, and there before it is resumed there."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.store import MANIFEST, Checkpoint, CheckpointStore
from core.config.config_file import to_toml
from core.errors import RunBusyError, RunNotFoundError, UsageError
from core.files.atomic import explained, write_atomic
from core.held_files import open_binary
from core.machines.answers import Resumed, RunPlace, Status
from core.machines.fetch import fetch_checkpoint
from core.machines.following import start_following
from core.machines.machine import THERE, Machine
from core.machines.machine_list import find_machine, list_machines
from core.machines.run_copy import catch_up, read_state
from core.machines.send import Report, Sender
from core.machines.session import Session, serving
from core.machines.starting import START_LIMIT_S
from core.machines.tree import Tree, tree_of
from core.metrics.metrics_file import whole_bytes
from core.paths import CHECKPOINTS
from core.recipes.outside_code import outside_code
from core.resume.own_run import changed_config
from core.run_folder.remote_run import RemoteRun, read_remote, write_remote
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, find_run

_BLOCK: Final = 1 << 20


def machine_of(store: RunStore) -> Machine | None:
    """The machine that the newest state of a run is on; None: this computer, or it was removed from the list.

    Raises:
        StateFileError: A file is damaged.
    """
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        return None
    return next((one for one in list_machines() if one.name.lower() == remote.machine.lower()), None)


def bring_here(store: RunStore, asked: str | None, report: Report) -> RemoteRun | None:
    """Brings what a resume here needs, where the run is on another machine: its lines, its state, a checkpoint.

    If that machine was removed from the list, it is gone for good: then what was fetched before is all there is.

    Args:
        store: The run here.
        asked: The number of the checkpoint that is wanted; None: the newest.
        report: Hears of what is fetched.

    Returns:
        Where the run is; None where it is here.

    Raises:
        RunBusyError: It trains there.
        RankdeckError: The machine cannot be reached; nothing can tell what the run does.
    """
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        return None
    if machine_of(store) is None:
        report.say(f"{remote.machine} was removed from the machines. What is here of the run is used.")
        return remote
    with store.lock(), serving(find_machine(remote.machine)) as session:
        state = catch_up(session, store, remote)
        if state.is_live:
            raise _is_live(store, remote, state)
        fetch_checkpoint(session, store, remote, asked, report)
    return remote


def brought_here(text: str, runs_dir: Path, changes: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """As `bring_here`, for whatever a resume can name.

    Args:
        text: A run, or a state file.
        runs_dir: Where runs are looked up.
        changes: As `core.resume.planner.plan_resume` takes them.
        report: Hears of what is fetched.

    Returns:
        The changes; GPUs of another machine are none of this one, so the devices are chosen again.
    """
    try:
        store = find_run(runs_dir, text)
    except RunNotFoundError:
        return dict(changes)  # a state file; or the planner says what is missing
    if bring_here(store, _asked(changes), report) is None:
        return dict(changes)
    return moved_changes(store, changes)


def moved_changes(store: RunStore, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a run that is resumed on another machine than before: GPUs of one are none of the other."""
    if "devices" in changes or all(name.startswith("cpu") for name in store.config().devices):
        return dict(changes)
    return {**changes, "devices": "auto"}


def now_here(store: RunStore) -> None:
    """Notes that the newest state of the run is here from now on; raises as `write_remote`."""
    remote = read_remote(store.dir)
    if remote is not None and remote.is_there:
        write_remote(store.dir, remote.replace(is_there=False))


def resume_there(
    machine: Machine, store: RunStore, changes: Mapping[str, Any], report: Report, *, accept_code: bool = False
) -> list[str]:
    """Resumes a run on another machine; what it lacks there is sent first, checkpoints by their manifests' hashes.

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
    given, changes = dict(changes), dict(changes)
    remote = read_remote(store.dir)
    if remote is not None and remote.is_there and remote.machine.lower() != machine.name.lower():
        bring_here(store, _asked(changes), report)
    with store.lock():
        state = store.stored_state()
        with serving(machine) as session:
            if remote is not None and remote.is_there and remote.machine.lower() == machine.name.lower():
                if catch_up(session, store, remote).is_live:
                    raise _is_live(store, remote, store.stored_state())
                state = store.stored_state()
                sent = remote
            else:
                accept_code = True
                changes = moved_changes(store, changes)
                sent = _send_run(session, store, changes, report)
            question = {"op": "resume", "run_dir": sent.run_dir, "changes": changes, "accept_code": accept_code}
            lines = session.ask(question, Resumed, START_LIMIT_S).lines
        write_remote(store.dir, sent.replace(is_there=True))
        _keep_settings(store, given)
        with explained(f"{store.model} could not be removed"):  # it is that of an earlier end
            store.model.unlink(missing_ok=True)
        fresh: dict[str, Any] = {"host": None, "phase": "", "error": None, "exit_code": None, "trouble": None}
        store.write_state(state.replace(state="starting", attempt=state.attempt + 1, updated=time.time(), **fresh))
    start_following(store)
    return list(lines)


def _keep_settings(store: RunStore, changes: dict[str, Any]) -> None:
    """Records here what was asked for: of what a machine says of a run's settings, not all is taken (`RunCopy`)."""
    changes.pop("checkpoint", None)
    config = changed_config(store.config(), changes, store.dir)
    config = config.replace(dataset_file=config.dataset_file.removeprefix(THERE))
    write_atomic(store.run_toml, to_toml(config))
    if (code := outside_code(config)) is not None:
        code.remember()


def _asked(changes: Mapping[str, Any]) -> str | None:
    asked = changes.get("checkpoint")
    return None if asked is None else str(asked)


def _send_run(session: Session, store: RunStore, changes: dict[str, Any], report: Report) -> RemoteRun:
    """Sends a run's settings, code, data, state and one checkpoint; returns where it is then."""
    before = store.config()
    if "dataset_file" in changes:
        before = before.replace(dataset_file=str(changes.pop("dataset_file")))
    check_not_continued(session, store)
    checkpoint = _checkpoint(store, _asked(changes))
    sender = Sender(session, report)
    config = sender.send(before)
    with tempfile.TemporaryDirectory(prefix="rankdeck-", ignore_cleanup_errors=True) as folder:
        run_toml = Path(folder) / "run.toml"
        write_atomic(run_toml, to_toml(config), durable=False)
        trees = [*_run_trees(store, checkpoint), tree_of("run", Path(folder), [run_toml])]
        files = []
        for tree in trees:
            report.progress(f"Sending the run to {session.machine.name}")
            session.send_files(tree)
            files += [[_place(tree, file.path), file.sha256, file.size] for file in tree.files]
    answer = session.ask({"op": "place", "run_id": store.dir.name, "files": files}, RunPlace)
    return RemoteRun(session.machine.name, answer.run_dir or "?")


def _run_trees(store: RunStore, checkpoint: Checkpoint | None) -> list[Tree]:
    """The run's files in the order in which they must arrive: a checkpoint before what says that it is there."""
    trees = []
    if checkpoint is not None:
        names = [*(file.name for file in checkpoint.files), MANIFEST]
        trees = [
            tree_of(f"{CHECKPOINTS}/{checkpoint.number}", checkpoint.folder, [checkpoint.folder / name])
            for name in names
        ]
    names = ["metrics.jsonl", "attempt.toml", "environment.json", "chunk_tracker_state.json", "state.json"]
    return [*trees, *(tree_of("run", store.dir, [store.dir / name]) for name in names if (store.dir / name).is_file())]


def _place(tree: Tree, path: str) -> str:
    return path if tree.name == "run" else f"{tree.name}/{path}"


def _checkpoint(store: RunStore, asked: str | None) -> Checkpoint | None:
    if asked is not None:
        return choose_checkpoint(store.checkpoints, asked.strip(), store.dir.name)
    return CheckpointStore(store.checkpoints).newest_valid()[0]


def check_not_continued(session: Session, store: RunStore) -> None:
    """Refuses a run whose folder there has lines that are not here: both would be its newest state.

    Raises:
        RunBusyError: It trains there.
        UsageError: It was continued there.
    """
    place = session.ask({"op": "find", "run_id": store.dir.name}, RunPlace).run_dir
    if place is None:
        return
    there = session.ask({"op": "status", "run_dir": place, "hash": True}, Status)
    name = session.machine.name
    if there.live:
        raise _is_live(store, RemoteRun(name, place), read_state(session, there.state))
    size = there.metrics_bytes
    if size > whole_bytes(store.metrics) or _beginning_hash(store.metrics, size) != there.metrics_sha256:
        raise UsageError(
            f"{store.dir.name} was continued on {name} too: its metrics there are not the beginning of those here.",
            f"Resume it here, or remove {place} on {name}.",
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


def _is_live(store: RunStore, remote: RemoteRun, state: RunState) -> RunBusyError:
    return RunBusyError(
        f"{store.dir.name} is {state.state} on {remote.machine}.",
        f"Watch it: rankdeck attach {store.dir.name}; or stop it first: rankdeck stop {store.dir.name}",
    )
