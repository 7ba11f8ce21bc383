"""Kept settings: small records in the folder of runs, shared by the window, the command line and hosts."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from core.errors import RankdeckError
from core.files.atomic import explained, read_json, write_atomic
from core.paths import default_runs_dir
from core.records import RecordError, read_record

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)


def read_settings(file: str, default: T) -> T:
    """Read kept settings; return the default where there are none, or where they cannot be read."""
    try:
        return read_record(type(default), read_json(default_runs_dir() / file))
    except (RecordError, RankdeckError, OSError):
        return default


def keep_settings(file: str, format_name: str, settings: DataclassInstance) -> None:
    folder = default_runs_dir()
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    values = {"format": format_name, "version": 1, **asdict(settings)}
    write_atomic(folder / file, json.dumps(values, indent=1) + "\n")
