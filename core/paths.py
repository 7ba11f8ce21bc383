"""Paths: this program's own folder, and the default folders for data, runs and tokens."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
"""The folder that holds `core` and `workers`."""
CHECKPOINTS: Final = "checkpoints"
"""In a run's folder: the folder of its checkpoints."""
OLD_CHECKPOINTS: Final = "generations"
"""The same in a run of 0.1, which keeps this name when it is resumed."""
SDK_FOLDER: Final = PACKAGE_FOLDER / "workers" / "sdk"
"""The folder that holds `rankdeck`, the public package, and nothing else."""


def data_folder() -> Path:
    """The user's own data folder for Rankdeck, as the platform has it."""
    folder: Path = user_data_path("Rankdeck" if sys.platform == "win32" else "rankdeck", appauthor=False)
    return folder


def default_runs_dir() -> Path:
    """Where runs live unless told otherwise: `RANKDECK_HOME`, else the user's own data folder."""
    home = os.environ.get("RANKDECK_HOME", "").strip()
    return Path(home).expanduser().absolute() if home else data_folder() / "runs"


def token_cache_dir() -> Path:
    """Where datasets are kept as tokens, shared by all runs; whatever is in it is made again when it is missing."""
    return default_runs_dir() / "cache" / "tokens"
