"""List of machines: a file in the person's data folder, the same for every folder of runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Final

from core.errors import StateFileError, UsageError
from core.files.atomic import explained, read_json, require_format, write_atomic
from core.machines.machine import Machine
from core.paths import data_folder
from core.records import RecordError, read_record

FORMAT: Final = "rankdeck-machines"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 20
_LIST: Final = "machines.json"


def machines_folder() -> Path:
    return data_folder() / "machines"


def list_machines() -> list[Machine]:
    """Read all machines, by name; raises `StateFileError` where the file is damaged or from a newer version."""
    path = machines_folder() / _LIST
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
    """Find a machine by its name, in upper or lower case; raises `UsageError`, or as `list_machines`."""
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
    """Add a machine to the list, in place of one of the same name; raises `PreflightError`, or as `list_machines`."""
    others = [other for other in list_machines() if other.name.lower() != machine.name.lower()]
    _write_list([*others, machine])


def remove_machine(machine: Machine) -> None:
    """Forget a machine; nothing there is changed. Raises as `keep_machine`."""
    _write_list([other for other in list_machines() if other.name != machine.name])


def _write_list(machines: list[Machine]) -> None:
    with explained(f"{machines_folder()} could not be made"):
        machines_folder().mkdir(parents=True, exist_ok=True)
    ordered = sorted(machines, key=lambda machine: machine.name.lower())
    values = {"format": FORMAT, "version": VERSION, "machines": [dataclasses.asdict(one) for one in ordered]}
    write_atomic(machines_folder() / _LIST, json.dumps(values, ensure_ascii=False, indent=1) + "\n", mode=0o600)
