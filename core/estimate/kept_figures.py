"""Figures that were measured are kept, a file each, in the cache of the folder of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.paths import default_runs_dir


def kept_file(name: str) -> Path:
    """Where figures of this name are kept."""
    return default_runs_dir() / "cache" / "estimates" / f"{name}.json"


def read_kept(path: Path) -> dict[str, Any]:
    """What was kept; empty if nothing was, or it cannot be read."""
    try:
        found = read_json(path)
    except RankdeckError:
        return {}
    return found if isinstance(found, dict) else {}


def keep(path: Path, values: Mapping[str, Any]) -> None:
    """Says nothing when the folder cannot be written: it is measured again when it is needed again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(values))
    except (OSError, RankdeckError):
        return
