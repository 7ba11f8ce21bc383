"""`rankdeck machines` (other machines) and `rankdeck fetch` (checkpoints of runs there)."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from core.cli.elsewhere import terminal_report
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.errors import UsageError
from core.formatting import UNKNOWN, memory_size
from core.machines.adding import add_machine, check_new
from core.machines.answers import Devices
from core.machines.fetch import Fetching
from core.machines.machine import Machine
from core.machines.machine_list import find_machine, list_machines, remove_machine
from core.machines.run_copy import catch_up
from core.machines.session import serving
from core.machines.setup import set_up
from core.run_folder.remote_run import read_remote
from core.run_folder.store import find_run


def machines(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.action == "add":
        return _add(arguments, terminal)
    if arguments.action == "list":
        return _list(arguments, terminal)
    machine = find_machine(_given(arguments.name, "machine", "rankdeck machines lists them."))
    if arguments.action == "remove":
        remove_machine(machine)
        terminal.say(
            f"Removed: {machine.name}. Nothing changes there: its runs, and the files that were sent, stay. So do the "
            "copies of its runs here; a run that trains there continues, and is no longer followed."
        )
        return 0
    if arguments.action == "setup":
        return _set_up(machine, arguments, terminal)
    return _check(machine, arguments, terminal)


def _add(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Keep the machine once it lets us in."""
    name = _given(arguments.name, "name", "rankdeck machines add NAME user@host")
    machine = check_new(
        Machine(
            name,
            _given(arguments.address, "address", f"rankdeck machines add {name} user@host"),
            arguments.port,
            arguments.identity or "",
            starter=arguments.starter or "",
            python=arguments.python or "",
            runs_dir=arguments.remote_runs_dir or "",
        )
    )
    machine = add_machine(machine)
    if arguments.json:
        terminal.json(asdict(machine))
    terminal.say(f"Added: {machine.name} ({machine.address}). Set it up: rankdeck machines setup {machine.name}")
    return 0


def _list(arguments: argparse.Namespace, terminal: Terminal) -> int:
    found = list_machines()
    if arguments.json:
        terminal.json([asdict(machine) for machine in found])
    elif found:
        rows = [
            (
                one.name,
                one.address,
                UNKNOWN if one.port is None else str(one.port),
                one.python or "own",
            )
            for one in found
        ]
        terminal.table(("MACHINE", "ADDRESS", "PORT", "PYTHON"), rows)
    else:
        terminal.say("There are no other machines. Add one: rankdeck machines add NAME user@host")
    return 0


def _set_up(machine: Machine, arguments: argparse.Namespace, terminal: Terminal) -> int:
    set_up(machine, arguments.build or "auto", arguments.wheels or "", terminal_report(terminal))
    terminal.end_progress()
    terminal.say(f"{machine.name} is set up. Check it: rankdeck machines check {machine.name}")
    return 0


def _check(machine: Machine, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Print the doctor's findings there, and its devices."""
    lines: list[str] = []
    with serving(machine) as session:
        code = session.run({"op": "doctor"}, lines.append if arguments.json else terminal.say)
        there = session.ask({"op": "devices"}, Devices)
    if arguments.json:
        terminal.json({"doctor": lines, **asdict(there)})
    for device in there.devices:
        terminal.say(f"{device.kind}:{device.index}  {device.name}, {memory_size(device.memory_bytes)}")
    return code


def fetch(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Bring a checkpoint, and the model, of a run on another machine here."""
    store = find_run(chosen_runs_dir(arguments), arguments.run)
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        raise UsageError(
            f"{store.dir.name} is on this computer.", "Nothing has to be fetched.", title="The run is here already"
        )
    report = terminal_report(terminal)
    with serving(find_machine(remote.machine)) as session:
        if not store.is_locked():  # its follower writes the rest
            with store.lock():
                catch_up(session, store, remote)
        asked = arguments.checkpoint.strip() if arguments.checkpoint else None
        number, model = Fetching(session, store, remote, report).fetch(asked, with_model=True)
    terminal.end_progress()
    what = ["no checkpoint yet" if number is None else f"checkpoint {number}", *(["the model"] if model else [])]
    terminal.say(f"Here now: {' and '.join(what)}, in {store.dir}")
    return 0


def _given(text: str | None, what: str, how: str) -> str:
    if not text:
        raise UsageError(f"No {what} was given.", how)
    return text
