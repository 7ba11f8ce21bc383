"""The client token of a run on several machines, kept in the user's own folder on the machine with the run's host.

The run's folder is shared there, and on a network drive a file's content travels in clear.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.files.atomic import explained, read_json, write_atomic
from core.files.private import make_private
from core.paths import data_folder

_FOLDER: Final = "hosts"
_MAX_BYTES: Final = 1 << 10


def write_secret(run_dir: Path, token: str) -> None:
    """Keep a run's token on this machine; only its owner can read it. Raises `PreflightError`."""
    path = _file(run_dir)
    with explained(f"{path} could not be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # a drive without access lists
            make_private(path.parent)
    write_atomic(path, json.dumps({"token": token}), mode=0o600)


def read_secret(run_dir: Path) -> str | None:
    path = _file(run_dir)
    if not path.exists():
        return None
    try:
        value = read_json(path, limit_bytes=_MAX_BYTES)
    except RankdeckError:
        return None
    token = value.get("token") if isinstance(value, dict) else None
    return token if isinstance(token, str) else None


def remove_secret(run_dir: Path) -> None:
    with contextlib.suppress(OSError):
        _file(run_dir).unlink(missing_ok=True)


def _file(run_dir: Path) -> Path:
    key = hashlib.sha256(str(run_dir.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return data_folder() / _FOLDER / f"{key}.json"
