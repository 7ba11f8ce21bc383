"""The folders of environments, models and runs; one question asks for the drive of all three.

Each path is kept in a file of its own, the folder of runs in the one that Settings writes. Nothing is moved.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.files.atomic import explained, write_atomic
from core.paths import (
    HUB_VARIABLES,
    RUNS_VARIABLE,
    data_folder,
    default_runs_dir,
    environments_dir_file,
    models_dir_file,
    read_folder,
    runs_dir_file,
)

FOLDER: Final = "Rankdeck"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that take room: Pythons with PyTorch, downloads from Hugging Face, runs with their checkpoints."""

    environments: Path
    models: Path
    runs: Path


def environments_folder() -> Path:
    """The chosen folder for environments, else one in the user's own data folder."""
    return read_folder(environments_dir_file()) or data_folder() / "environments"


def environment_folders() -> tuple[Path, ...]:
    """All folders of environments: the one for new ones first, then the default."""
    return tuple(dict.fromkeys((environments_folder(), data_folder() / "environments")))


def models_folder() -> Path:
    """The folder of models: by the person's own variables, else the chosen one, else Hugging Face's."""
    if not any(os.environ.get(name, "").strip() for name in HUB_VARIABLES):
        chosen = read_folder(models_dir_file())
        if chosen is not None:
            return chosen
    home = os.environ.get("HF_HOME", "").strip() or os.environ.get("HF_HUB_CACHE", "").strip()
    return Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface"


def current_places() -> Places:
    return Places(environments_folder(), models_folder(), default_runs_dir())


def places_on(base: Path, now: Places) -> Places:
    """Places below one folder, such as the root of a drive.

    A folder that the person's variables set stays, and so does one that has runs: they would vanish from the list.
    """
    root = base if base.name.lower() == FOLDER.lower() else base / FOLDER
    found = Places(root / "environments", root / "models", root / "runs")
    if any(os.environ.get(name, "").strip() for name in HUB_VARIABLES):
        found = replace(found, models=now.models)
    if os.environ.get(RUNS_VARIABLE, "").strip() or has_runs(now.runs):
        found = replace(found, runs=now.runs)
    return found


def has_runs(folder: Path) -> bool:
    try:
        return any((path / "run.toml").is_file() for path in folder.iterdir())
    except OSError:
        return False


def keep_places(places: Places) -> None:
    """Use these places from now on, the folder of runs from the next start. Existing files stay where they are.

    Raises:
        PreflightError: A folder cannot be made, or the choice cannot be written.
    """
    now = current_places()
    for folder, before, file in (
        (places.environments, now.environments, environments_dir_file()),
        (places.models, now.models, models_dir_file()),
        (places.runs, now.runs, runs_dir_file()),
    ):
        if folder != before:
            with explained(f"{folder} could not be made"):
                folder.mkdir(parents=True, exist_ok=True)
            keep_folder(file, folder)


def keep_folder(file: Path, folder: Path) -> None:
    """Write a folder's path into a file such as `runs_dir_file`; raises `PreflightError`."""
    with explained(f"{file} could not be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, f"{folder}\n")
