"""`rankdeck machines`: lists, adds, removes, checks and sets up other machines.

And `rankdeck fetch`: brings their checkpoints here.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Final

from core.cli.elsewhere import terminal_report
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.errors import PreflightError, UsageError
from core.formatting import UNKNOWN, memory_size
from core.machines.adding import add_machine, new_machine, read_host_key
from core.machines.answers import Devices, Examined
from core.machines.fetch import fetch_checkpoint, fetch_model
from core.machines.machine import Machine
from core.machines.machine_list import STAYS, find_machine, list_machines, remove_machine, warn_of_live_runs
from core.machines.run_copy import catch_up
from core.machines.session import serving
from core.machines.setup import set_up
from core.paths import default_runs_dir
from core.run_folder.remote_run import read_remote
from core.run_folder.store import find_run

_LEVELS: Final = {"ok": "OK", "warn": "WARN", "fail": "FAIL", "not_tried": "–"}


def machines(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.action == "add":
        return _add(arguments, terminal)
    if arguments.action == "list":
        return _list(arguments, terminal)
    machine = find_machine(_given(arguments.name, "machine", "rankdeck machines lists them."))
    if arguments.action == "remove":
        return _remove(machine, arguments, terminal)
    if arguments.action == "setup":
        return _set_up(machine, arguments, terminal)
    return _check(machine, arguments, terminal)


def _add(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Shows the host key, and keeps the machine once it is confirmed and lets us in."""
    name = _given(arguments.name, "name", "rankdeck machines add NAME user@host")
    machine = new_machine(
        name,
        _given(arguments.address, "address", f"rankdeck machines add {name} user@host"),
        arguments.port or "",
        arguments.identity or "",
        python=arguments.python or "",
        runs_dir=arguments.remote_runs_dir or "",
        starter=arguments.starter or "",
    )
    key = read_host_key(machine)
    terminal.say(f"{machine.address} shows the host key {key.fingerprint} ({key.type}).")
    _confirm(key.fingerprint, arguments, terminal)
    machine = add_machine(machine, key)
    if arguments.json:
        terminal.json(asdict(machine))
    terminal.say(f"Added: {machine.name} ({machine.address}). Set it up: rankdeck machines setup {machine.name}")
    return 0


def _confirm(fingerprint: str, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.fingerprint:
        if arguments.fingerprint.strip() != fingerprint:
            raise UsageError(
                f"The host key is {fingerprint}, not {arguments.fingerprint.strip():.80}.",
                "Ask the administrator of the machine which one is right.",
                title="The host key is another one",
            )
    elif not arguments.yes and not terminal.ask("Is this the machine's own key? [y/N] "):
        raise UsageError(
            "The host key was not confirmed, so the machine was not added.",
            f"Compare it with what the machine says (ssh-keygen -lf), then add: --fingerprint {fingerprint}",
            title="The host key is not confirmed",
        )


def _remove(machine: Machine, arguments: argparse.Namespace, terminal: Terminal) -> int:
    warning = warn_of_live_runs(machine, default_runs_dir())
    if warning and not arguments.yes:
        terminal.say(warning)
        if not terminal.ask(f"Remove {machine.name} from the machines? [y/N] "):
            raise UsageError(
                f"{warning} {machine.name} was not removed.",
                "Stop them first, or confirm that.",
                option="--yes",
                title="Runs train there",
            )
    remove_machine(machine)
    terminal.say(f"Removed: {machine.name}. {STAYS}")
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
                one.fingerprint,
                one.python or "own",
            )
            for one in found
        ]
        terminal.table(("MACHINE", "ADDRESS", "PORT", "HOST KEY", "PYTHON"), rows)
    else:
        terminal.say("There are no other machines. Add one: rankdeck machines add NAME user@host")
    return 0


def _set_up(machine: Machine, arguments: argparse.Namespace, terminal: Terminal) -> int:
    shown = ""

    def report(step: str) -> None:
        nonlocal shown
        head = step.partition(":")[0]
        if terminal.is_interactive:
            terminal.progress(step)
        elif head != shown:
            terminal.say(step)
        shown = head

    set_up(machine, arguments.build or "auto", arguments.wheels or "", report)
    terminal.end_progress()
    terminal.say(f"{machine.name} is set up. Check it: rankdeck machines check {machine.name}")
    return 0


def _check(machine: Machine, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints the doctor's findings there, and its devices."""
    with serving(machine) as session:
        found = []
        for examined in session.stream({"op": "doctor"}, Examined):
            found.append(examined)
            finding = examined.finding
            if not arguments.json:
                terminal.say(f"{_LEVELS[finding.level]:4}  {finding.name}: {finding.text}")
                if finding.next_step:
                    terminal.say(f"      → {finding.next_step}")
        there = session.ask({"op": "devices"}, Devices)
    if arguments.json:
        findings = [asdict(examined.finding) for examined in found]
        terminal.json({"findings": findings, **asdict(there)})
    else:
        for device in there.devices:
            terminal.say(f"{device.kind}:{device.index}  {device.name}, {memory_size(device.memory_bytes)}")
    return PreflightError.exit_code if any(examined.stops_runs for examined in found) else 0


def fetch(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Brings a checkpoint, and the model, of a run on another machine here."""
    store = find_run(chosen_runs_dir(arguments), arguments.run)
    remote = read_remote(store.dir)
    if remote is None or not remote.is_there:
        raise UsageError(
            f"{store.dir.name} is on this computer.", "Nothing has to be fetched.", title="The run is here already"
        )
    report = terminal_report(terminal)
    with serving(find_machine(remote.machine)) as session:
        if not store.is_locked():  # what follows it writes the rest
            with store.lock():
                catch_up(session, store, remote)
        number = fetch_checkpoint(session, store, remote, arguments.checkpoint, report)
        model = fetch_model(session, store, remote, report)
    terminal.end_progress()
    what = ["no checkpoint yet" if number is None else f"checkpoint {number}", *(["the model"] if model else [])]
    terminal.say(f"Here now: {' and '.join(what)}, in {store.dir}")
    return 0


def _given(text: str | None, what: str, how: str) -> str:
    if not text:
        raise UsageError(f"No {what} was given.", how)
    return text
