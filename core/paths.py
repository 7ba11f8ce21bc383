"""Paths: this program's own folder, and the default folders for data, runs and tokens."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

from core.held_files import read_utf8

# The folder that holds `core` and `workers`.
PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
# In a run's folder: the folder of its checkpoints.
CHECKPOINTS: Final = "checkpoints"
# The same in a run of 0.1, which keeps this name when it is resumed.
OLD_CHECKPOINTS: Final = "generations"
RUNS_VARIABLE: Final = "RANKDECK_HOME"
# With each of these a person says where Hugging Face keeps what it downloads.
HUB_VARIABLES: Final = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE")
# The folder that holds `rankdeck`, the public package, and nothing else.
SDK_FOLDER: Final = PACKAGE_FOLDER / "workers" / "sdk"


# What Windows' dialogs put before a path that is copied out of them.
_INVISIBLE: Final = "\u200b\u200e\u200f\u202a\u202c\ufeff"
_QUOTES: Final = ('""', "''", "“”", "„“", "‘’", "«»")


def typed_path(text: str) -> Path:
    """Read a typed or pasted path: in quotes, as ``file://``, with ``~`` or a variable such as ``$HOME``."""
    text = text.strip().strip(_INVISIBLE).strip()
    while len(text) > 1 and text[0] + text[-1] in _QUOTES:
        text = text[1:-1].strip()
    # No name has a quote there; "C:\My data\" ends in one, as the C runtime has it.
    if sys.platform == "win32":
        text = text.strip('"')
    if re.match(r"file:/", text, re.IGNORECASE):
        text = _path_of_url(text)
    path = Path(os.path.expandvars(text))
    # "~name" of no known user is then a file's name.
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    return path


def _path_of_url(url: str) -> str:
    host, slash, path = re.sub(r"^file:(//)?", "", url, flags=re.IGNORECASE).partition("/")
    path = urllib.parse.unquote(slash + path)
    if host and host.lower() != "localhost":
        return f"//{host}{path}"
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def data_folder() -> Path:
    """The user's own data folder for Rankdeck, by the platform's convention."""
    folder: Path = user_data_path("Rankdeck" if sys.platform == "win32" else "rankdeck", appauthor=False)
    return folder


def runs_dir_of_environment() -> Path | None:
    home = os.environ.get(RUNS_VARIABLE, "").strip()
    return Path(home).expanduser().absolute() if home else None


def default_runs_dir() -> Path:
    """The folder of runs: `RANKDECK_HOME`, else the chosen one, else one of the user's own."""
    return runs_dir_of_environment() or read_folder(runs_dir_file()) or data_folder() / "runs"


def runs_dir_file() -> Path:
    """The file with the path of the folder of runs that was chosen in Settings."""
    return data_folder() / "runs-folder.txt"


def read_folder(file: Path) -> Path | None:
    """The folder whose path is in a file such as `runs_dir_file`."""
    try:
        text = read_utf8(file).strip()
    except (OSError, UnicodeDecodeError):
        return None
    folder = Path(text)
    return folder if folder.is_absolute() else None


def environments_dir_file() -> Path:
    """The file with the path of the chosen folder for environments."""
    return data_folder() / "environments-folder.txt"


def models_dir_file() -> Path:
    """The file with the path of the chosen folder for models and datasets of Hugging Face."""
    return data_folder() / "models-folder.txt"


def model_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that send Hugging Face's downloads to the chosen folder.

    Not `HF_HOME`: a person's sign-in lies there too.
    """
    folder = None if any(environ.get(name, "").strip() for name in HUB_VARIABLES) else read_folder(models_dir_file())
    if folder is None:
        return {}
    places = {"HF_HUB_CACHE": "hub", "HF_DATASETS_CACHE": "datasets", "HF_XET_CACHE": "xet"}
    return {name: str(folder / place) for name, place in places.items()}


def token_cache_dir() -> Path:
    """The cache of datasets as tokens, shared by all runs; missing ones are made again."""
    return default_runs_dir() / "cache" / "tokens"
