"""`host.spawned.json`: the process that was started as a run's host, written by the program that started it.

A host says its own name in `state.json` once it is at work. Until then only the program that spawned it knows whether
it lives. That program must not write `state.json`, which is the host's from its first instruction on; hence this file.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Final

from core.errors import RankdeckError, StateFileError
from core.files.atomic import read_json, write_atomic
from core.processes.identity import ProcessId

FILE_NAME: Final = "host.spawned.json"
MAX_FILE_BYTES: Final = 1 << 16


def write_spawned_host(folder: Path, attempt: int, process: ProcessId) -> None:
    """Notes which process is to host the attempt. A disk that refuses costs the note, not the run."""
    text = json.dumps({"attempt": attempt, "pid": process.pid, "started": process.started})
    with contextlib.suppress(RankdeckError):
        write_atomic(folder / FILE_NAME, text + "\n", durable=False)


def read_spawned_host(folder: Path, attempt: int) -> ProcessId | None:
    """The process that was started to host this attempt; None where that is not known, or known of another attempt."""
    try:
        value = read_json(folder / FILE_NAME, limit_bytes=MAX_FILE_BYTES)
    except StateFileError:
        return None
    return ProcessId.from_json(value) if isinstance(value, dict) and value.get("attempt") == attempt else None
