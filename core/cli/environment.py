"""`rankdeck environment`: lists, makes, chooses and removes environments for training."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.terminal import Terminal
from core.environments.downloads import CancelledError
from core.environments.make import make as make_environment
from core.environments.record import (
    Environment,
    choose,
    chosen_environment,
    environments_folder,
    executable_in,
    folder_of,
    list_environments,
    read_environment,
    remove,
)
from core.environments.wanted import BUILDS, default_name, wanted_for
from core.errors import UsageError
from core.formatting import UNKNOWN, listed, moment
from core.machine.torch_builds import ENV_TORCH_INDEX, has_nvidia_driver, read_driver
from core.training_python import training_python


def environment(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Does what is asked; exit code 130 after Ctrl+C, which leaves what has arrived for the next time."""
    parent = Path(arguments.folder).expanduser().absolute() if arguments.folder else environments_folder()
    if arguments.all:
        return _remove_all(arguments, parent, terminal)
    if arguments.action == "make":
        return _make(arguments, parent, terminal)
    if arguments.action == "list":
        return _list(arguments, parent, terminal)
    found = _named(arguments, parent)
    if arguments.action == "use":
        choose(found)
        terminal.say(_use(found))
    else:
        remove(found)
        terminal.say(f"Removed: {found.name}")
    return 0


def _make(arguments: argparse.Namespace, parent: Path, terminal: Terminal) -> int:
    build = arguments.build or "auto"
    if build not in BUILDS:
        raise UsageError(f"There is no build {build!r:.80}.", f"Choose from {listed(BUILDS)}.")
    driver = read_driver() if build == "auto" and has_nvidia_driver(sys.platform) else None
    folder = folder_of(parent, arguments.name or default_name(build, driver))
    wheels = Path(arguments.wheels).expanduser().absolute() if arguments.wheels else None
    if wheels is not None and not wheels.is_dir():
        raise UsageError(f"{wheels} is not a folder.", "Give the folder that holds the wheels.")
    index = os.environ.get(ENV_TORCH_INDEX) or None
    wanted = wanted_for(folder, build, arguments.extra or (), driver, index, wheels)
    with counted_interrupts() as interrupts:
        try:
            made = make_environment(wanted, lambda now: terminal.progress(now.text), lambda: interrupts.count > 0)
        except CancelledError:
            terminal.end_progress()
            terminal.say(f"Stopped. Continue: rankdeck environment make {folder.name}")
            return INTERRUPTED_TWICE
    terminal.end_progress()
    choose(made)
    if arguments.json:
        terminal.json(_values(made))
    terminal.say(f"{made.name} is ready (torch {made.record.torch}). {_use(made)}")
    return 0


def _remove_all(arguments: argparse.Namespace, parent: Path, terminal: Terminal) -> int:
    if arguments.action != "remove" or arguments.name:
        raise UsageError("--all belongs to remove, without a name.", "rankdeck environment remove --all")
    elsewhere = chosen_environment()
    found = {one.folder: one for one in [*list_environments(parent), *([elsewhere] if elsewhere else [])]}
    for one in found.values():
        remove(one)
        terminal.say(f"Removed: {one.name}")
    return 0


def _list(arguments: argparse.Namespace, parent: Path, terminal: Terminal) -> int:
    found = list_environments(parent)
    if arguments.json:
        terminal.json([_values(one) for one in found])
        return 0
    if found:
        headings = ("NAME", "STATE", "PYTHON", "TORCH", "EXTRAS", "CREATED")
        terminal.table(headings, [_row(one) for one in found])
    else:
        terminal.say(f"There are no environments in {parent}. Make one: rankdeck environment make")
    terminal.say(f"Runs are trained with {training_python().executable}")
    return 0


def _row(one: Environment) -> tuple[str, ...]:
    record = one.record
    state = "chosen" if one.is_chosen else "ready" if record.state == "ready" else "incomplete"
    torch, extras = record.torch or UNKNOWN, " ".join(record.extras) or UNKNOWN
    return (one.name, state, record.python, torch, extras, moment(record.created))


def _use(chosen: Environment) -> str:
    if training_python().executable == executable_in(chosen.folder):
        return f"Runs are trained with {chosen.name} from now on."
    return f"Rankdeck without PyTorch trains with {chosen.name} from now on; this Python has its own."


def _values(one: Environment) -> dict[str, object]:
    record = one.record
    return {
        "name": one.name,
        "folder": str(one.folder),
        "state": record.state,
        "chosen": one.is_chosen,
        "python": record.python,
        "torch": record.torch,
        "extras": list(record.extras),
        "created": record.created,
    }


def _named(arguments: argparse.Namespace, parent: Path) -> Environment:
    if not arguments.name:
        raise UsageError("No environment was named.", "To list them: rankdeck environment")
    found = read_environment(folder_of(parent, arguments.name))
    if found is None:
        raise UsageError(
            f"There is no environment {arguments.name!r:.80} in {parent}.", "rankdeck environment lists them."
        )
    return found
