"""Live runs of this person in any folder: each host leaves a note in the person's data folder while it lives.

A setup that replaces or removes the program must know of a run whose folder is on another drive, in no list of runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.held_files import remove_file
from core.paths import data_folder
from core.processes.identity import ProcessId, is_alive, own

FOLDER: Final = "live-runs"
_MAX_BYTES: Final = 1 << 16


@contextlib.contextmanager
def noted_as_live(run_dir: Path) -> Iterator[None]:
    """Leave this process's note while it is the host of a run; a disk that refuses costs only the note."""
    note = _folder() / f"{uuid.uuid4().hex}.json"
    with contextlib.suppress(RankdeckError, OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        values = {"run_dir": str(run_dir.absolute()), **dataclasses.asdict(own())}
        write_atomic(note, json.dumps(values), mode=0o600)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            remove_file(note)


def live_run_dirs() -> list[Path]:
    found = []
    with contextlib.suppress(OSError):
        for note in sorted(_folder().glob("*.json")):
            run_dir = _read(note)
            if run_dir is not None:
                found.append(run_dir)
            else:
                with contextlib.suppress(OSError):
                    remove_file(note)
    return found


def _folder() -> Path:
    return data_folder() / FOLDER


def _read(note: Path) -> Path | None:
    try:
        value = read_json(note, limit_bytes=_MAX_BYTES)
    except (RankdeckError, OSError):
        return None
    if not isinstance(value, dict):
        return None
    text, host = value.pop("run_dir", None), ProcessId.from_json(value)
    return Path(text) if isinstance(text, str) and host is not None and is_alive(host) else None
