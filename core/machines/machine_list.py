"""The list of machines: one file in the folder of runs, and a second one with the host keys that were confirmed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any, Final

from core.errors import StateFileError, UsageError
from core.files.atomic import explained, read_json, require_format, write_atomic
from core.held_files import read_utf8
from core.machines.machine import Machine
from core.paths import default_runs_dir
from core.records import RecordError, read_record

FORMAT: Final = "rankdeck-machines"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 20


def machines_folder() -> Path:
    """The folder of both files, in the folder of runs."""
    return default_runs_dir() / "machines"


def known_hosts_file() -> Path:
    """The host keys, as ssh reads them."""
    return machines_folder() / "known_hosts"


def list_machines() -> list[Machine]:
    """All of them, by name.

    Raises:
        StateFileError: The file is damaged, or from a newer version.
    """
    path = _file()
    if not path.exists():
        return []
    values = require_format(read_json(path, limit_bytes=_MAX_BYTES), path, FORMAT, VERSION)
    items: Any = values.get("machines")
    try:
        found = [read_record(Machine, item) for item in items] if isinstance(items, list) else []
    except RecordError as error:
        raise StateFileError(f"{path}: {error}.", "Correct that line, or delete the file.") from None
    return sorted(found, key=lambda machine: machine.name.lower())


def find_machine(name: str) -> Machine:
    """The machine of that name, in whichever case.

    Raises:
        UsageError: There is none.
        StateFileError: As `list_machines`.
    """
    found = list_machines()
    for machine in found:
        if machine.name.lower() == name.strip().lower():
            return machine
    names = ", ".join(machine.name for machine in found)
    raise UsageError(
        f"There is no machine {name!r:.80}.",
        f"Choose from: {names}." if names else "Add one: rankdeck machines add NAME user@host",
        title="No such machine",
    )


def keep_machine(machine: Machine) -> None:
    """Keeps a machine, in place of one of the same name; its host key is kept by `keep_host_key`.

    Raises:
        PreflightError: The folder cannot be written.
        StateFileError: As `list_machines`.
    """
    others = [other for other in list_machines() if other.name.lower() != machine.name.lower()]
    _write([*others, machine])


def remove_machine(machine: Machine) -> None:
    """Forgets a machine and its host key; nothing there is changed. Raises as `keep_machine`."""
    _write([other for other in list_machines() if other.name != machine.name])
    keep_host_key(machine, "")


def keep_host_key(machine: Machine, host_keys: str) -> None:
    """Keeps the lines of a machine's host key, whose first word is `Machine.host_key_name`, in place of earlier ones.

    Raises:
        PreflightError: The folder cannot be written.
    """
    _make_folder()
    lines: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        lines = read_utf8(known_hosts_file(), errors="replace").splitlines()
    kept = [line for line in lines if line.split(" ", 1)[0] != machine.host_key_name]
    text = "\n".join([*kept, *host_keys.splitlines()])
    write_atomic(known_hosts_file(), f"{text}\n" if text else "", mode=0o600)


def _file() -> Path:
    return machines_folder() / "machines.json"


def _write(machines: list[Machine]) -> None:
    _make_folder()
    ordered = sorted(machines, key=lambda machine: machine.name.lower())
    values = {"format": FORMAT, "version": VERSION, "machines": [dataclasses.asdict(one) for one in ordered]}
    write_atomic(_file(), json.dumps(values, ensure_ascii=False, indent=1) + "\n", mode=0o600)


def _make_folder() -> None:
    with explained(f"{machines_folder()} could not be made"):
        machines_folder().mkdir(parents=True, exist_ok=True)
