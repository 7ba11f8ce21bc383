"""Adding a machine: checks the typed values, and signs in to find a Python there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from core.errors import RankdeckError, UsageError
from core.files.atomic import parse_path
from core.machines.machine import Machine, MachineError, UnreachableError, check_address, check_name
from core.machines.machine_list import keep_machine, list_machines
from core.machines.session import Session
from core.machines.ssh import PYTHON_MISSING

# Words that start a Python on Linux, on Windows, and on Windows with the launcher alone.
_STARTERS: Final = ("python3", "python", "py -3")
# A path that every shell takes as it is.
_PLAIN: Final = re.compile(r"[\w./:\\+-]+", re.ASCII)
_TRY_NEXT: Final = (PYTHON_MISSING, "Python is too old there")


def check_new(machine: Machine) -> Machine:
    """Check a machine as it was typed; raises `UsageError` for a wrong value, or where there is one of that name."""
    name, address = check_name(machine.name), check_address(machine.address)
    if any(other.name.lower() == name.lower() for other in list_machines()):
        raise UsageError(
            f"There is a machine {name} already.", "Remove it first.", option=f"rankdeck machines remove {name}"
        )
    if machine.port is not None and not 0 < machine.port < 65536:
        raise UsageError(f"{machine.port} is not a port.", "Give a number from 1 to 65535.")
    return replace(machine, name=name, address=address, identity=_identity(machine.identity.strip()))


def add_machine(machine: Machine) -> Machine:
    """Keep a machine once it lets us in and starts a Python.

    Raises:
        UnreachableError, MachineError: It does not let us in, or has no new Python; nothing is kept then.
        PreflightError: The list cannot be written.
    """
    machine = _with_starter(machine)
    keep_machine(machine)
    return machine


def _with_starter(machine: Machine) -> Machine:
    """Find the words that start a Python there by trying, and return the machine with them."""
    first: RankdeckError | None = None
    named = (machine.python,) if _PLAIN.fullmatch(machine.python) else ()
    for starter in (machine.starter,) if machine.starter else (*named, *_STARTERS):
        found = replace(machine, starter=starter)
        try:
            Session(found).close()
        except (UnreachableError, MachineError) as error:
            first = first or error
            if error.title not in _TRY_NEXT:
                raise
        else:
            return found
    assert first is not None
    raise first


def _identity(text: str) -> str:
    if not text:
        return ""
    path = parse_path(text)
    if path is None or not path.is_file():
        raise UsageError(
            f"There is no key file {text:.200}.", "Name the file of a private key, or leave it to ssh-agent."
        )
    if path.suffix == ".pub":
        raise UsageError(f"{path} is the public half of a key.", f"Name the private one: {path.with_suffix('')}")
    return str(path.absolute())
