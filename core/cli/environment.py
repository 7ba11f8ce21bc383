"""`rankdeck environment`: lists, makes, chooses and removes environments for training."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.terminal import Terminal
from core.environments.downloads import CancelledError
from core.environments.make import make as make_environment
from core.environments.places import Places, current_places, environment_folders, keep_places, places_on
from core.environments.record import (
    REMOVED,
    Environment,
    choose,
    chosen_environment,
    clean_up,
    executable_in,
    folder_of,
    list_environments,
    read_environment,
    remove,
)
from core.environments.wanted import BUILDS, default_name, outdated_text, wanted_for
from core.errors import UsageError, sentences
from core.formatting import UNKNOWN, listed, moment
from core.machine.torch_builds import ENV_TORCH_INDEX, BuildChoice, choose_build, has_nvidia_driver, read_driver
from core.training_python import training_python, why_variable_unused


def environment(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Carry out an action; exit code 130 after Ctrl+C, which keeps the downloads so far for the next time."""
    parents = (_path(arguments.folder),) if arguments.folder else environment_folders()
    if arguments.all:
        return _remove_all(arguments, parents, terminal)
    if arguments.action == "make":
        return _make(arguments, terminal)
    if arguments.action == "list":
        return _list(arguments, parents, terminal)
    found = _named(arguments, parents)
    if arguments.action == "use":
        choose(found)
        terminal.say(_use(found))
    else:
        _remove(found, terminal)
    return 0


def _remove(environment: Environment, terminal: Terminal) -> None:
    """Remove an environment; files that a program holds go with the next removal or making."""
    if remove(environment):
        parent = environment.folder.parent
        terminal.warn(
            f"{environment.name} is no longer listed, but programs hold files of it in {parent} ({REMOVED}…). "
            "They are deleted when you make or remove an environment the next time."
        )
    else:
        terminal.say(f"Removed: {environment.name}")


def _path(text: str) -> Path:
    text = f"{text}\\" if text.endswith(":") and os.name == "nt" else text  # "D:" alone is the current folder there
    return Path(text).expanduser().absolute()


def _make(arguments: argparse.Namespace, terminal: Terminal) -> int:
    build = arguments.build or "auto"
    if build not in BUILDS:
        raise UsageError(f"There is no build {build!r:.80}.", f"Choose from {listed(BUILDS)}.")
    places, now = _places(arguments), current_places()
    driver = read_driver() if build == "auto" and has_nvidia_driver(sys.platform) else None
    folder = folder_of(places.environments, arguments.name or default_name(build, driver))
    wheels = _path(arguments.wheels) if arguments.wheels else None
    if wheels is not None and not wheels.is_dir():
        raise UsageError(f"{wheels} is not a folder.", "Give the folder that holds the wheels.")
    index = os.environ.get(ENV_TORCH_INDEX) or None
    wanted = wanted_for(folder, build, arguments.extra or (), driver, index, wheels)
    choice = choose_build(driver) if build == "auto" else BuildChoice(build, "It was asked for.")
    terminal.say(sentences(f"{choice.title}.", choice.reason, choice.advice))
    with counted_interrupts() as interrupts:
        try:
            keep_places(places)
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
    if places.runs != now.runs:
        terminal.say(f"New runs are kept in {places.runs}. Those in {now.runs} stay there.")
    return 0


def _places(arguments: argparse.Namespace) -> Places:
    """The folders that the flags name: a drive for all three, or one for environments."""
    places = current_places()
    if arguments.drive:
        places = places_on(_path(arguments.drive), places)
    return replace(places, environments=_path(arguments.folder)) if arguments.folder else places


def _remove_all(arguments: argparse.Namespace, parents: Sequence[Path], terminal: Terminal) -> int:
    if arguments.action != "remove" or arguments.name:
        raise UsageError("--all belongs to remove, without a name.", "rankdeck environment remove --all")
    elsewhere = chosen_environment()
    below = [one for parent in parents for one in list_environments(parent)]
    found = {one.folder: one for one in [*below, *([elsewhere] if elsewhere else [])]}
    for one in found.values():
        _remove(one, terminal)
    for folder in {*parents, *(one.folder.parent for one in found.values())}:
        clean_up(folder)
        with contextlib.suppress(OSError):  # holds other things, or is not there
            folder.rmdir()
    return 0


def _list(arguments: argparse.Namespace, parents: Sequence[Path], terminal: Terminal) -> int:
    found = [one for parent in parents for one in list_environments(parent)]
    if arguments.json:
        terminal.json([_values(one) for one in found])
        return 0
    if found:
        headings = ("NAME", "STATE", "PYTHON", "TORCH", "EXTRAS", "CREATED")
        terminal.table(headings, [_row(one) for one in found])
    else:
        terminal.say(f"There are no environments in {parents[0]}. Make one: rankdeck environment make")
    terminal.say(sentences(f"Runs are trained with {training_python().executable}.", why_variable_unused()))
    for one in found:
        if one.is_chosen and (text := outdated_text(one)):
            terminal.say(f"{one.name}: {text} Make another one beside it: rankdeck environment make NAME")
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
    return {"name": one.name, "folder": str(one.folder), "chosen": one.is_chosen, **asdict(one.record)}


def _named(arguments: argparse.Namespace, parents: Sequence[Path]) -> Environment:
    if not arguments.name:
        raise UsageError("No environment was named.", "To list them: rankdeck environment")
    found = [one for parent in parents if (one := read_environment(folder_of(parent, arguments.name))) is not None]
    if not found:
        places = listed([str(parent) for parent in parents])
        raise UsageError(
            f"There is no environment {arguments.name!r:.80} in {places}.", "rankdeck environment lists them."
        )
    return found[0]
