"""`RemoteRun`: the note in a run's folder that the run is, or was, on another machine (`remote.json`)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from core.errors import StateFileError
from core.files.atomic import read_json, require_format, write_atomic
from core.records import Limits, RecordError, read_record

FILE_NAME: Final = "remote.json"
FORMAT: Final = "rankdeck-remote"
VERSION: Final = 1
# The title of the trouble in the state of a copy that cannot be kept up just now begins so.
NO_CONNECTION: Final = "No connection to"
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """The machine of a run, and the run's folder there.

    Attributes:
        is_there: The newest state of the run is there, and this folder is a copy; False once it was resumed here.
    """

    machine: Annotated[str, Limits(1, 40)]
    run_dir: Annotated[str, Limits(1, 4096)]
    is_there: bool = True

    def replace(self, **changes: Any) -> RemoteRun:
        return dataclasses.replace(self, **changes)


def read_remote(run_dir: Path) -> RemoteRun | None:
    """Read the note in a run's folder; None where the run has only been here. Raises `StateFileError`."""
    path = run_dir / FILE_NAME
    if not path.exists():
        return None
    values = require_format(read_json(path, limit_bytes=_MAX_BYTES), path, FORMAT, VERSION)
    try:
        return read_record(RemoteRun, values)
    except RecordError as error:
        raise StateFileError(f"{path}: {error}.", "Delete that file if the run is only here.") from None


def write_remote(run_dir: Path, remote: RemoteRun) -> None:
    """Write the note; raises `PreflightError` when the disk refuses."""
    values = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(remote)}
    write_atomic(run_dir / FILE_NAME, json.dumps(values, ensure_ascii=False, indent=1) + "\n")
