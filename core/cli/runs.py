"""`rankdeck runs`, `show`, `stop` and `attach`: what is done with runs that are there already."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import list_checkpoints
from core.cli.follow import RUN_FAILED, Ending, Follower, exit_code, report_ending, run_error
from core.cli.interrupts import counted_interrupts
from core.cli.terminal import Terminal
from core.client import end_leftovers, stop_run, wait_for_end
from core.errors import RankdeckError, UsageError, sentences
from core.export.lines import MetricsLines
from core.formatting import UNKNOWN, byte_size, count, moment, number
from core.launch.command_line import command_text, to_command_line
from core.paths import default_runs_dir
from core.recipes.main_metric import MainMetrics
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.live_runs import live_run_dirs
from core.run_folder.naming import label
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord, notes_of, remote_of
from core.run_folder.remote_run import read_remote
from core.run_folder.removal import folder_bytes
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore, find_run, list_runs, read_entry

_MACHINE_COLUMN: Final = 3
# Beyond the run's own stop limit: for its host to end the ranks and write its last words.
STOP_WAIT_EXTRA_S: Final = 15.0


def runs(arguments: argparse.Namespace, terminal: Terminal) -> int:
    runs_dir = chosen_runs_dir(arguments)
    entries = list_runs(runs_dir)
    if arguments.live:
        listed = {entry.path.resolve() for entry in entries}
        others = (read_entry(folder) for folder in live_run_dirs() if folder.resolve() not in listed)
        entries += [entry for entry in others if entry is not None]
        entries = [entry for entry in entries if entry.state is not None and entry.state.is_live]
    notes = {entry.path: notes_of(entry.path) for entry in entries}
    if arguments.json:
        terminal.json([entry_values(entry, notes[entry.path]) for entry in entries])
    elif not entries and arguments.live:
        terminal.say("No run is running.")
    elif not entries:
        terminal.say(f"There are no runs yet in {runs_dir}. Start one: rankdeck train")
    else:
        list_table([RunRecord(entry, notes[entry.path], remote=remote_of(entry.path)) for entry in entries], terminal)
    return 0


def list_table(records: Sequence[RunRecord], terminal: Terminal) -> None:
    headings, metrics = ["RUN", "NAME", "STATE", "STEP", "VALUE", "STARTED", "WHY"], MainMetrics()
    rows = [_row(record.entry, record.label, metrics) for record in records]
    if any(record.machine for record in records):
        headings.insert(_MACHINE_COLUMN, "MACHINE")
        for row, record in zip(rows, records, strict=True):
            row.insert(_MACHINE_COLUMN, record.machine or UNKNOWN)
    terminal.table(headings, rows)


def leftover_text(pids: Sequence[int]) -> str:
    """ "1 process (pid 12)", "2 processes (pids 12, 13)"."""
    numbers = ", ".join(map(str, pids))
    return f"1 process (pid {numbers})" if len(pids) == 1 else f"{len(pids)} processes (pids {numbers})"


def show(arguments: argparse.Namespace, terminal: Terminal) -> int:
    store = _find(arguments)
    if arguments.samples or arguments.step is not None:
        return _samples(arguments, store, terminal)
    state, config = store.state(), store.config()
    command = command_text(to_command_line(config))
    checkpoints = list_checkpoints(store.checkpoints)
    if arguments.json:
        values = {"path": str(store.dir), **state.as_dict(), "config": config.as_dict(), "command": command}
        terminal.json({**values, "checkpoints": [asdict(item) for item in checkpoints]})
        return 0
    notes = notes_of(store.dir)
    terminal.facts(
        {
            "Run": state.run_id,
            "Name": label(state, notes),
            **({"Tags": " ".join(notes.tags)} if notes.tags else {}),
            **({"Note": notes.note} if notes.note else {}),
            "Size": byte_size(folder_bytes(store.dir)),
            "Folder": str(store.dir),
            "State": f"{state.state}{f' ({state.phase})' if state.phase else ''}, attempt {state.attempt}",
            "Started": moment(state.created),
            "Step": _steps(state),
            **_figures(store, state),
            "Last checkpoint": count(state.checkpoint),
            "Checkpoints": ", ".join(item.text for item in checkpoints) or UNKNOWN,
            **_machine(store),
            "Mode": f"{state.mode} on {', '.join(state.devices) or UNKNOWN}",
            "Data": config.dataset_file,
            "Model": str(store.model) if store.model.is_file() else UNKNOWN,
            "Command": command,
        }
    )
    if state.fallback:
        terminal.say(f"It fell back: {state.fallback}")
    if state.error is not None:
        error = run_error(state, store)
        terminal.say(str(error))
    return 0


def _machine(store: RunStore) -> dict[str, str]:
    remote = read_remote(store.dir)
    return {"Machine": f"{remote.machine}, {remote.run_dir}"} if remote is not None and remote.is_there else {}


def _samples(arguments: argparse.Namespace, store: RunStore, terminal: Terminal) -> int:
    found = False
    for line in MetricsLines(store.metrics).read():
        if line["event"] != "sample" or arguments.step not in (None, line.get("step")):
            continue
        found = True
        if arguments.json:
            terminal.json(line)
            continue
        terminal.say(f"── step {line.get('step')}, attempt {line.get('attempt')}, rank {line.get('rank')}")
        terminal.text(f"{line.get('prompt') or ''}{line.get('text') or ''}".rstrip() + "\n")
    if not found and not arguments.json:
        which = "" if arguments.step is None else f" at step {arguments.step}"
        terminal.say(f"{store.dir.name} has no text samples{which}. Samples are written at each evaluation.")
    return 0


def stop(arguments: argparse.Namespace, terminal: Terminal) -> int:
    store = _find_followed(arguments)
    state = store.state()
    if not state.is_live:
        ended, left = end_leftovers(store)
        if left:
            raise RankdeckError(
                f"{state.run_id} is {state.state}, and {leftover_text(left)} did not end, even when killed.",
                "Restart the machine to end them.",
                title="Leftover processes could not be ended",
            )
        if ended:
            terminal.say(f"{state.run_id} is {state.state}; ended {leftover_text(ended)} that it had left running.")
            return 0
        resume = "" if state.state == "finished" else f"Resume it: rankdeck resume {store.dir.name}. "
        raise UsageError(
            f"{state.run_id} is {state.state}.",
            f"{resume}rankdeck runs lists the runs that are running.",
            title="The run is not running",
        )
    stop_run(store, now=arguments.now)
    terminal.say(_stop_text(state, arguments.now))
    state = _ended(store, store.config().stop_timeout_s + STOP_WAIT_EXTRA_S)
    at = f" at step {count(state.step)}" if state.step or state.recipe != USER_SCRIPT else ""
    terminal.say(f"{state.run_id} is {state.state}{at}.")
    if state.error is None:
        return 0
    error = run_error(state, store)
    if arguments.now and state.state == "stopped":  # just what was asked for
        terminal.say(sentences(error.cause, error.next_step))
        return 0
    terminal.error(error)
    return state.exit_code or RUN_FAILED


def _stop_text(state: RunState, now: bool) -> str:
    if now:
        return "Stopping it now."
    if state.recipe == USER_SCRIPT:
        return "Asked the script to stop."
    return "It saves a checkpoint at the next step and stops."


def attach(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Watch a run until it ends; Ctrl+C leaves it running. As JSON it begins with the run's first line."""
    store = _find_followed(arguments)
    follower = Follower(store, terminal, arguments.json)
    if not arguments.json:
        follower.replay()
        terminal.say(f"Run {store.dir.name} in {store.dir}. Ctrl+C leaves it running.")
    with counted_interrupts() as interrupts:
        ending: Ending = follower.until_end(interrupts, lambda _number: True)
    if ending.state.is_live:
        terminal.say(f"The run continues. To stop it: rankdeck stop {store.dir.name}")
        return 0
    report_ending(ending, store, terminal)
    return exit_code(ending)


def chosen_runs_dir(arguments: argparse.Namespace) -> Path:
    return Path(arguments.runs_dir).absolute() if arguments.runs_dir else default_runs_dir()


def _find(arguments: argparse.Namespace) -> RunStore:
    return find_run(chosen_runs_dir(arguments), arguments.run)


def _find_followed(arguments: argparse.Namespace) -> RunStore:
    from core.machines.follow import followed

    return followed(_find(arguments))


def _ended(store: RunStore, timeout_s: float) -> RunState:
    state = wait_for_end(store, timeout_s)
    if state.is_live:
        raise RankdeckError(
            f"{state.run_id} was asked to stop and is still {state.state} after {timeout_s:.0f} s.",
            f"Stop it immediately: rankdeck stop --now {store.dir.name}",
            title="The run has not stopped",
        )
    return state


def _steps(state: RunState) -> str:
    if state.recipe == USER_SCRIPT and not state.step:
        return UNKNOWN  # a script may print none that is recognised
    return count(state.step) + (f" of {count(state.total_steps)}" if state.total_steps else "")


def _figures(store: RunStore, state: RunState) -> dict[str, str]:
    metric = MainMetrics().of(state.recipe)
    curve = metric.read(state.loss, store.columns, store.metrics)
    evaluated = f"best evaluation {number(metric.best(curve), 4)}"
    if "loss" in metric.names:
        evaluated = f"validation {number(state.val_loss, 4)}"
    return {metric.title.capitalize(): f"{number(metric.last(state.loss, curve), 4)}, {evaluated}"}


def _row(entry: RunEntry, label: str, metrics: MainMetrics) -> list[str]:
    state, name = entry.state, "" if label == entry.path.name else label
    if state is None:
        return [entry.path.name, name, entry.word, UNKNOWN, UNKNOWN, UNKNOWN, entry.problem or ""]
    why = state.error.get("cause", "") if state.error else state.phase
    metric, store = metrics.of(state.recipe), RunStore(entry.path)
    value = metric.last(state.loss, metric.read(state.loss, store.columns, store.metrics))
    figure = UNKNOWN if value is None else f"{metric.title} {number(value, 4)}"
    return [entry.path.name, name, entry.word, _steps(state), figure, moment(state.created), why]


def entry_values(entry: RunEntry, notes: RunNotes) -> dict[str, Any]:
    record = RunRecord(entry, notes, remote=remote_of(entry.path))
    own = {"path": str(entry.path), "label": record.label, "notes": asdict(notes), "machine": record.machine or None}
    if entry.state is None:
        return {**own, "run_id": entry.path.name, "state": entry.word, "problem": entry.problem}
    return {**own, **entry.state.as_dict()}
