"""Code that a run executes and that did not come with Rankdeck: a recipe named by its folder, a program of one's own.

A recipe is code, and it runs with the permissions of the user who resumes. What users start themselves is recorded
here, on this machine and not in the run's folder; a run that names any other code came from somewhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.fields import FieldValue
from core.errors import RankdeckError, StateFileError, UsageError
from core.files.atomic import read_json, write_atomic
from core.paths import default_runs_dir
from core.recipes.catalog import user_recipes_folders
from core.recipes.manifest import BUILT_IN
from core.recipes.user_script import RECIPE as USER_SCRIPT

FILE_NAME: Final = "known-code.json"
_FORMAT: Final = "rankdeck-known-code"
_MAX_BYTES: Final = 1 << 20
_MAX_KEPT: Final = 2000
_PROGRAM_OPTIONS: Final = ("script", "module", "python", "arguments", "environment", "working_directory")


@dataclass(frozen=True, slots=True)
class OutsideCode:
    """Code that a run's settings name.

    Attributes:
        text: What it is, as a sentence for the resume plan.
        place: The recipe's folder, or the program.
        in_run_folder: It lies in a run's folder, so it came with the run.
        key: What it is known by.
    """

    text: str
    place: str
    in_run_folder: bool
    key: str

    @property
    def is_known(self) -> bool:
        """Whether it was started, or agreed to, on this machine before."""
        return self.key in _known()

    def remember(self) -> None:
        """Notes that this person has started it. A disk that refuses costs the note: it is asked about again."""
        known = _known()
        if self.key in known:
            return
        document = {"format": _FORMAT, "version": 1, "known": [*known, self.key][-_MAX_KEPT:]}
        with contextlib.suppress(RankdeckError):
            write_atomic(_file(), json.dumps(document, indent=1) + "\n", mode=0o600)


class OutsideCodeError(UsageError):
    """A run names code that was never started on this machine, and the user has not agreed to run it."""

    title = "This run uses its own code"


def outside_code(recipe: str, options: Mapping[str, FieldValue]) -> OutsideCode | None:
    """The code that a run executes beside Rankdeck's own and the person's own recipes; None where there is none."""
    if recipe == USER_SCRIPT:
        return _program({name: str(options.get(name) or "") for name in _PROGRAM_OPTIONS})
    if not (Path(recipe) / "recipe.toml").is_file():
        return None
    folder = Path(recipe).resolve()
    if folder.parent in (BUILT_IN.resolve(), *(own.resolve() for own in user_recipes_folders())):
        return None
    text = f"This run uses the recipe code in {folder}. It runs with your permissions."
    return OutsideCode(text, str(folder), _is_in_run_folder(folder), f"recipe {folder}")


def check_accepted(code: OutsideCode, accepted: bool) -> None:
    """Refuses code that the user has not agreed to run.

    Raises:
        OutsideCodeError: Says which, and how to agree.
    """
    if accepted:
        return
    if code.in_run_folder:
        raise OutsideCodeError(
            f"{code.text} It is stored in the run's folder, so the creator of that folder wrote it.",
            "Read that code first. If you trust it, confirm that.",
            option="--trust-recipe",
        )
    raise OutsideCodeError(
        f"{code.text} It was never started on this machine.",
        "Read that code first. If you trust it, confirm that.",
        option="--yes",
    )


def _program(options: dict[str, str]) -> OutsideCode:
    target = options["script"] or f"python -m {options['module']}"
    python = f" with {options['python']}" if options["python"] else ""
    folder = f" in {options['working_directory']}" if options["working_directory"] else ""
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
    files = [options[name] for name in ("script", "python", "working_directory") if options[name]]
    return OutsideCode(
        f"This run starts the program {target}{python}{folder}. It runs with your permissions.",
        target,
        any(_is_in_run_folder(Path(file)) for file in files),
        f"program {digest}",
    )


def _is_in_run_folder(path: Path) -> bool:
    found = path.resolve()
    return any((folder / "run.toml").exists() for folder in (found, *found.parents))


def _file() -> Path:
    runs_dir = default_runs_dir()
    return (runs_dir if os.environ.get("RANKDECK_HOME", "").strip() else runs_dir.parent) / FILE_NAME


def _known() -> list[str]:
    try:
        document: Any = read_json(_file(), limit_bytes=_MAX_BYTES)
    except StateFileError:  # missing, or damaged: everything is asked about again
        return []
    known = document.get("known") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    return [item for item in known if isinstance(item, str)] if isinstance(known, list) else []
