"""`rankdeck train --machine` and `rankdeck resume`, where a run is on another machine or goes there."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.cli.terminal import Terminal
from core.errors import RunNotFoundError
from core.files.atomic import parse_path
from core.launch.command_line import TrainRequest
from core.machines.machine import Report
from core.machines.machine_list import find_machine
from core.machines.moving import brought_here, machine_of, plan_move, resume_there, start_there
from core.metrics.metrics_file import whole_bytes
from core.paths import default_runs_dir
from core.recipes.outside_code import check_accepted, outside_code
from core.run_folder.store import RunStore, find_run


def terminal_report(terminal: Terminal) -> Report:
    """Reports progress on a terminal: each line in place of the last one, elsewhere the beginning of each step once."""
    shown = ""

    def report(step: str) -> None:
        nonlocal shown
        head = step.partition(":")[0]
        if terminal.is_interactive:
            terminal.progress(step)
        elif head != shown and not terminal.quiet:
            terminal.say(step)
        shown = head

    return report


def start_on_machine(arguments: argparse.Namespace, request: TrainRequest, terminal: Terminal) -> RunStore:
    """Starts a run on the machine that the arguments name; returns its copy here."""
    machine = find_machine(arguments.machine)
    store, notes = start_there(machine, request, request.runs_dir or default_runs_dir(), terminal_report(terminal))
    terminal.end_progress()
    for note in notes:
        terminal.warn(note)
    if not arguments.detach:
        terminal.say(f"Run {store.dir.name} on {machine.name}; its copy is in {store.dir}")
    return store


def resume_on_machine(
    arguments: argparse.Namespace, runs_dir: Path, changes: Mapping[str, Any], terminal: Terminal
) -> tuple[RunStore, int] | None:
    """Resumes a run on the machine that the arguments name.

    Returns:
        Its copy here, and how much of its metrics is not new; None where only the plan was asked for.
    """
    machine = find_machine(arguments.machine)
    path = parse_path(arguments.path)
    store = find_run(runs_dir, str(path.parent) if path is not None and path.is_file() else arguments.path)
    if arguments.dry_run:
        plan = plan_move(store, machine, changes, accept_code=arguments.trust_recipe)
        say_lines(plan.summary().lines, arguments, terminal)
        return None
    code = outside_code(store.config())
    if code is not None and not code.is_known and not arguments.trust_recipe:
        for line in code.lines:
            terminal.warn(line)
        check_accepted(code, agrees(code.in_run_folder, arguments, terminal))
    offset = whole_bytes(store.metrics)
    lines = resume_there(machine, store, changes, terminal_report(terminal), accept_code=True)
    terminal.end_progress()
    say_lines([*lines, f"On: {machine.name}."], arguments, terminal)
    return store, offset


def agrees(in_run_folder: bool, arguments: argparse.Namespace, terminal: Terminal) -> bool:
    """Asks whether the user agrees to run a run's code, here or on another machine.

    Code inside a run's folder needs the flag, not a keystroke: its creator wrote it.
    """
    if in_run_folder or arguments.trust_recipe:
        return bool(arguments.trust_recipe)
    terminal.end_progress()
    return bool(arguments.yes) or terminal.ask("It was never started on this machine. Run it? [y/N] ")


def shows_move(arguments: argparse.Namespace, runs_dir: Path, changes: Mapping[str, Any], terminal: Terminal) -> bool:
    """Shows what resuming here would do, if the run is on another machine; nothing is fetched for that."""
    try:
        store = find_run(runs_dir, arguments.path)
    except RunNotFoundError:
        # A state file; or the planner says what is missing.
        return False
    if machine_of(store) is None:
        return False
    plan = plan_move(store, None, changes, accept_code=arguments.trust_recipe)
    say_lines(plan.summary().lines, arguments, terminal)
    return True


def say_lines(lines: Iterable[str], arguments: argparse.Namespace, terminal: Terminal) -> None:
    for line in lines:
        (terminal.warn if arguments.detach or arguments.json else terminal.say)(line)


def fetched(
    arguments: argparse.Namespace, runs_dir: Path, changes: Mapping[str, Any], terminal: Terminal
) -> dict[str, Any]:
    """Brings here what a resume here needs, if the run is on another machine; see `brought_here`."""
    try:
        return brought_here(arguments.path, runs_dir, changes, terminal_report(terminal))
    finally:
        terminal.end_progress()
