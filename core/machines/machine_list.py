"""The list of machines: a file in the person's data folder, and a second one with the host keys that were confirmed.

They belong to the person, not to a folder of runs: a window on another folder has the same machines.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any, Final

from core.errors import StateFileError, UsageError
from core.files.atomic import explained, read_json, require_format, write_atomic
from core.formatting import listed
from core.held_files import read_utf8
from core.machines.machine import Machine
from core.paths import data_folder
from core.records import RecordError, read_record
from core.run_folder.record import RunRecord, notes_of, remote_of
from core.run_folder.store import RunStore, list_runs

STAYS: Final = "Nothing changes there: its runs, and what was sent, stay. So do the copies of its runs here."
FORMAT: Final = "rankdeck-machines"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 20
_FOLDER: Final = "machines"
_LIST: Final = "machines.json"
_KEYS: Final = "known_hosts"


def machines_folder() -> Path:
    return data_folder() / _FOLDER


def known_hosts_file() -> Path:
    return machines_folder() / _KEYS


def list_machines() -> list[Machine]:
    """All of them, by name.

    Raises:
        StateFileError: The file is damaged, or from a newer version.
    """
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
    _write_list([*others, machine])


def remove_machine(machine: Machine) -> None:
    """Forgets a machine and its host key; nothing there is changed. Raises as `keep_machine`."""
    _write_list([other for other in list_machines() if other.name != machine.name])
    keep_host_key(machine, "")


def warn_of_live_runs(machine: Machine, runs_dir: Path) -> str:
    """What happens to runs that train on a machine that is removed, followed or not; empty: none does.

    Raises:
        PreflightError: The folder of runs cannot be read.
    """
    records = [RunRecord(entry, notes_of(entry.path), remote=remote_of(entry.path)) for entry in list_runs(runs_dir)]
    there = [one for one in records if one.entry.state and one.machine.lower() == machine.name.lower()]
    names = [one.label for one in there if RunStore(one.path).stored_state().is_live]
    if not names:
        return ""
    return f"Still training there: {listed(names)}. That continues, and is followed only until the connection ends."


def keep_host_key(machine: Machine, host_keys: str) -> None:
    """Keeps the lines of a machine's host key, whose first word is `Machine.host_key_name`, in place of earlier ones.

    Raises:
        PreflightError: The folder cannot be written.
    """
    kept = [line for line in _host_keys() if line.split(" ", 1)[0] != machine.host_key_name]
    text = "\n".join([*kept, *host_keys.splitlines()])
    _make_folder()
    write_atomic(known_hosts_file(), f"{text}\n" if text else "", mode=0o600)


def _host_keys() -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return read_utf8(known_hosts_file(), errors="replace").splitlines()
    return []


def _make_folder() -> None:
    with explained(f"{machines_folder()} could not be made"):
        machines_folder().mkdir(parents=True, exist_ok=True)


def _write_list(machines: list[Machine]) -> None:
    _make_folder()
    ordered = sorted(machines, key=lambda machine: machine.name.lower())
    values = {"format": FORMAT, "version": VERSION, "machines": [dataclasses.asdict(one) for one in ordered]}
    write_atomic(machines_folder() / _LIST, json.dumps(values, ensure_ascii=False, indent=1) + "\n", mode=0o600)
