"""Code of a run that did not come with Rankdeck: a recipe named by its folder, a program of one's own, and settings
that lead to code or to files elsewhere, such as environment variables.

All of it runs with the permissions of the user who resumes. Code that users start themselves is recorded in their own
data folder, never with the runs; a run that names anything else came from somewhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.fields import FieldValue
from core.config.run_config import RunConfig
from core.errors import RankdeckError, StateFileError, UsageError
from core.files.atomic import read_json, write_atomic
from core.paths import data_folder
from core.recipes.catalog import user_recipes_folders
from core.recipes.manifest import BUILT_IN
from core.recipes.user_script import RECIPE as USER_SCRIPT

# The option that agrees to run code of a run's folder: not to be had by a keystroke.
IN_RUN_FOLDER: Final = "--trust-recipe"
FILE_NAME: Final = "known-code.json"
_FORMAT: Final = "rankdeck-known-code"
_MAX_BYTES: Final = 1 << 20
_MAX_KEPT: Final = 5000
_PROGRAM_OPTIONS: Final = ("script", "module", "python", "arguments", "environment", "working_directory")
_SECRET_NAME: Final = re.compile(r"token|secret|passw|key|auth|credential", re.IGNORECASE)
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class OutsideCode:
    """Code, and settings like it, that a run names.

    Attributes:
        lines: A sentence on each, for the resume plan.
        in_run_folder: Some of it lies in a run's folder, so it came with the run.
    """

    lines: tuple[str, ...]
    keys: tuple[str, ...]
    in_run_folder: bool

    @property
    def text(self) -> str:
        return " ".join(self.lines)

    @property
    def is_known(self) -> bool:
        """Whether all of it was started, or agreed to, on this machine before."""
        return self.is_known_of(self)

    def is_known_of(self, folder: OutsideCode | None) -> bool:
        """As `is_known`, for what a run's folder names too; the person has just given the rest."""
        named = set(self.keys) & set(folder.keys if folder is not None else ())
        return not named or named <= set(_known())

    def remember(self) -> None:
        """Record that this person has started it. A disk that refuses costs the record: it is asked about again."""
        known = _known()
        new = [key for key in self.keys if key not in known]
        if not new:
            return
        document = {"format": _FORMAT, "version": 1, "known": [*known, *new][-_MAX_KEPT:]}
        with contextlib.suppress(RankdeckError, OSError):
            known_code_file().parent.mkdir(parents=True, exist_ok=True)
            write_atomic(known_code_file(), json.dumps(document, indent=1) + "\n", mode=0o600)


class OutsideCodeError(UsageError):
    title = "This run was not started here"


def outside_code(config: RunConfig) -> OutsideCode | None:
    """The code and files that a run uses beside Rankdeck's own and the person's own recipes; None for none."""
    parts = [*_code(config), *_variables(config.env)]
    if config.log_file:
        file = str(Path(config.log_file))  # one key for C:/x and C:\\x
        parts.append((f"A copy of the metrics is appended to {file}.", [_key("log file", file)], False))
    if config.deepspeed_config:
        line = "DeepSpeed reads settings that came with the run; they can name files to write to."
        parts.append((line, [_key("deepspeed", config.deepspeed_config)], False))
    if not parts:
        return None
    keys = tuple(key for _, part_keys, _ in parts for key in part_keys)
    return OutsideCode(tuple(line for line, _, _ in parts), keys, any(inside for _, _, inside in parts))


def check_accepted(code: OutsideCode, accepted: bool) -> None:
    """Raise `OutsideCodeError` for code that the user has not agreed to run."""
    if accepted:
        return
    if code.in_run_folder:
        raise OutsideCodeError(
            f"{code.text} Code for it is stored in a run's folder, so the creator of that folder wrote it.",
            "Read that code first. If you trust it, confirm that.",
            option=IN_RUN_FOLDER,
        )
    raise OutsideCodeError(
        f"{code.text} It was never started on this machine.",
        "Check that first. If you trust it, confirm that.",
        option="--yes",
    )


def known_code_file() -> Path:
    """This person's record, never with the runs, which may have come from another person."""
    return data_folder() / FILE_NAME


_Part = tuple[str, list[str], bool]


def _code(config: RunConfig) -> Iterator[_Part]:
    if config.recipe == USER_SCRIPT:
        yield _program(config.options)
    elif (Path(config.recipe) / "recipe.toml").is_file():
        folder = Path(config.recipe).resolve()
        if folder.parent not in (BUILT_IN.resolve(), *(own.resolve() for own in user_recipes_folders())):
            text = f"This run uses the recipe code in {folder}. It runs with your permissions."
            yield text, [f"recipe {folder}"], _is_in_run_folder(folder)


def _program(given: Mapping[str, FieldValue]) -> _Part:
    options = {name: str(given.get(name) or "") for name in _PROGRAM_OPTIONS}
    target = options["script"] or f"python -m {options['module']}"
    python = f" with {options['python']}" if options["python"] else ""
    folder = f" in {options['working_directory']}" if options["working_directory"] else ""
    files = [options[name] for name in ("script", "python", "working_directory") if options[name]]
    return (
        f"This run starts the program {target}{python}{folder}. It runs with your permissions.",
        [_key("program", json.dumps(options, sort_keys=True), digits=64)],
        any(_is_in_run_folder(Path(file)) for file in files),
    )


def _variables(env: Mapping[str, str]) -> Iterator[_Part]:
    if not env:
        return
    shown = ", ".join(f"{name}={'…' if _SECRET_NAME.search(name) else value[:_SHOWN]}" for name, value in env.items())
    pieces = [piece for value in env.values() for piece in (value, *value.split(os.pathsep), *value.split())]
    inside = any(Path(piece).is_absolute() and _is_in_run_folder(Path(piece)) for piece in pieces)
    keys = [_key("variable", f"{name}={value}") for name, value in env.items()]
    yield f"Environment variables for every process: {shown}.", keys, inside


def _key(kind: str, text: str, digits: int = 32) -> str:
    return f"{kind} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:digits]}"


def _is_in_run_folder(path: Path) -> bool:
    try:
        found = path.resolve()
        return any((folder / "run.toml").exists() for folder in (found, *found.parents))
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        return False


def _known() -> list[str]:
    try:
        document: Any = read_json(known_code_file(), limit_bytes=_MAX_BYTES)
    except StateFileError:  # missing, or damaged: everything is asked about again
        return []
    known = document.get("known") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    return [item for item in known if isinstance(item, str)] if isinstance(known, list) else []
