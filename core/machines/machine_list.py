"""The list of machines: a file in the person's data folder, and a second one with the host keys that were confirmed.

They belong to the person, not to a folder of runs: a window on another folder has the same machines. Up to 0.1 they lay
in the folder of runs, and are read there until the list is written the next time.
"""

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
from core.paths import data_folder, default_runs_dir
from core.records import RecordError, read_record

FORMAT: Final = "rankdeck-machines"
VERSION: Final = 1
_MAX_BYTES: Final = 1 << 20
_FOLDER: Final = "machines"
_LIST: Final = "machines.json"
_KEYS: Final = "known_hosts"


def machines_folder() -> Path:
    """The folder of both files."""
    return data_folder() / _FOLDER


def known_hosts_file() -> Path:
    """The host keys, as ssh reads them."""
    return _folder() / _KEYS


def list_machines() -> list[Machine]:
    """All of them, by name.

    Raises:
        StateFileError: The file is damaged, or from a newer version.
    """
    path = _folder() / _LIST
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
    _take_over()
    lines = _host_keys(machines_folder())
    kept = [line for line in lines if line.split(" ", 1)[0] != machine.host_key_name]
    text = "\n".join([*kept, *host_keys.splitlines()])
    write_atomic(known_hosts_file(), f"{text}\n" if text else "", mode=0o600)


def _folder() -> Path:
    """Where the files are: the person's own, or those of 0.1."""
    own, before = machines_folder(), default_runs_dir() / _FOLDER
    return before if not (own / _LIST).exists() and (before / _LIST).exists() else own


def _host_keys(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return read_utf8(folder / _KEYS, errors="replace").splitlines()
    return []


def _write(machines: list[Machine]) -> None:
    _take_over()
    _write_list(machines)


def _take_over() -> None:
    """Makes the person's own folder, with what is in that of 0.1. Keys first: the list says which folder counts."""
    before = _folder()
    with explained(f"{machines_folder()} could not be made"):
        machines_folder().mkdir(parents=True, exist_ok=True)
    if before != machines_folder():
        keys = "".join(f"{line}\n" for line in _host_keys(before))
        write_atomic(machines_folder() / _KEYS, keys, mode=0o600)
        _write_list(list_machines())


def _write_list(machines: list[Machine]) -> None:
    ordered = sorted(machines, key=lambda machine: machine.name.lower())
    values = {"format": FORMAT, "version": VERSION, "machines": [dataclasses.asdict(one) for one in ordered]}
    write_atomic(machines_folder() / _LIST, json.dumps(values, ensure_ascii=False, indent=1) + "\n", mode=0o600)
