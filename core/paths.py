"""Where this program lies, and where things are kept on this machine unless a person says otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
"""The folder that holds `core` and `workers`."""


def default_runs_dir() -> Path:
    """Where runs live unless told otherwise: `RANKDECK_HOME`, else the user's own data folder."""
    home = os.environ.get("RANKDECK_HOME", "").strip()
    if home:
        return Path(home).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "").strip()
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "Rankdeck" / "runs"
    data = os.environ.get("XDG_DATA_HOME", "").strip()
    return (Path(data) if data else Path.home() / ".local" / "share") / "rankdeck" / "runs"


def token_cache_dir() -> Path:
    """Where datasets are kept as tokens, shared by all runs; whatever is in it is made again when it is missing."""
    return default_runs_dir() / "cache" / "tokens"
