"""Environments on disk: a folder each, with a record of its contents and state."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from core.errors import PreflightError, UsageError
from core.files.atomic import explained, write_atomic
from core.held_files import read_utf8, remove_file, remove_folder, rename
from core.parsing import ParseError, parse_json
from core.records import RecordError, read_record
from core.training_python import FORMAT as CHOICE_FORMAT
from core.training_python import choice_file, chosen_python

RECORD: Final = "environment.json"
DOWNLOADS: Final = "downloads"
_FORMAT: Final = "rankdeck-environment"
_NAME: Final = re.compile(r"[\w][\w.+-]{0,63}", re.ASCII)
# A folder of this name is being deleted; one that was held then is deleted at the next removal or making.
REMOVED: Final = ".removed-"
_CLEAN_UP_LIMIT_S: Final = 2.0
_WINDOWS: Final = os.name == "nt"


@dataclass(frozen=True, slots=True)
class Record:
    """The contents of an environment.

    Attributes:
        state: "making" from before its first file until its self-test has passed.
        torch: The version of its PyTorch; empty while it is not known.
        created: In Unix seconds.
    """

    state: Literal["making", "ready"]
    python: str = ""
    torch: str = ""
    extras: tuple[str, ...] = ()
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path
    record: Record

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_chosen(self) -> bool:
        """It trains the next runs."""
        return chosen_python() == executable_in(self.folder)


def executable_in(folder: Path) -> Path:
    return folder / "python" / "python.exe" if _WINDOWS else folder / "python" / "bin" / "python"


def folder_of(parent: Path, name: str) -> Path:
    """The folder of an environment; raises `UsageError` for a name that no folder can have."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(f"{name!r:.80} is not a name for an environment.", "Use letters, digits, dots, + and -.")
    return parent / name


def free_folder(parent: Path, name: str) -> Path:
    """A folder beside complete environments: "torch-2.13.0-cu130", "torch-2.13.0-cu130-2"."""
    number, folder = 1, folder_of(parent, name)
    while (found := read_environment(folder)) is not None and found.record.state == "ready":
        number += 1
        folder = folder_of(parent, f"{name}-{number}")
    return folder


def find_suitable(parent: Path, name: str, extras: Iterable[str]) -> Environment | None:
    """Find a complete environment of a build with these extras; "NAME-2" and so on are others of that build."""
    wanted = set(extras)
    for one in list_environments(parent):
        is_same_build = one.name == name or one.name.removeprefix(f"{name}-").isdigit()
        if is_same_build and one.record.state == "ready" and wanted <= set(one.record.extras):
            return one
    return None


def list_environments(parent: Path) -> list[Environment]:
    try:
        folders = sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.startswith(REMOVED))
    except OSError:
        return []
    return [found for folder in folders if (found := read_environment(folder)) is not None]


def chosen_environment() -> Environment | None:
    """The environment that trains, in whichever folder it is; None where another Python does."""
    python = chosen_python()
    if python is None:
        return None
    found = read_environment((python.parent if _WINDOWS else python.parent.parent).parent)
    return found if found is not None and found.is_chosen else None


def read_environment(folder: Path) -> Environment | None:
    """The environment in a folder; None without a record, or with a damaged one."""
    try:
        value = parse_json(read_utf8(folder / RECORD))
        if not isinstance(value, dict) or value.pop("format", None) != _FORMAT:
            return None
        return Environment(folder, read_record(Record, value))
    except (OSError, UnicodeDecodeError, ParseError, RecordError):
        return None


def write_record(folder: Path, record: Record) -> None:
    """Write an environment's record; raises `PreflightError`."""
    with explained(f"{folder} could not be written"):
        folder.mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = {"format": _FORMAT, **dataclasses.asdict(record)}
    write_atomic(folder / RECORD, json.dumps(values, indent=1))


def choose(environment: Environment) -> None:
    """Train with it from the next run on; raises `PreflightError` if it is not complete."""
    if environment.record.state != "ready":
        raise PreflightError(
            f"{environment.name} is not complete.",
            "Complete it first.",
            option=f"rankdeck environment make {environment.name}",
        )
    choice_file().parent.mkdir(parents=True, exist_ok=True)
    values = {"format": CHOICE_FORMAT, "executable": str(executable_in(environment.folder))}
    write_atomic(choice_file(), json.dumps(values))


def remove(environment: Environment) -> int:
    """Delete an environment and return `clean_up`'s count; raises `PreflightError` if it is in use.

    It is renamed first, which Windows refuses while a program of it runs; then nothing is changed.
    """
    removed = environment.folder.with_name(f"{REMOVED}{environment.name}-{time.time_ns():x}")
    is_chosen = environment.is_chosen
    with explained(f"{environment.folder} could not be removed; a run may use it"):
        rename(environment.folder, removed)
    if is_chosen:
        remove_file(choice_file())
    return clean_up(environment.folder.parent)


def clean_up(parent: Path) -> int:
    """Delete the rests of removals, as far as no program holds their files; return how many folders are left."""
    left = 0
    with contextlib.suppress(OSError):
        for folder in list(parent.glob(f"{REMOVED}*")):
            try:
                remove_folder(folder, timeout_s=_CLEAN_UP_LIMIT_S)
            except OSError:
                left += 1
    return left
