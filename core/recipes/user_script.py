"""Settings of the recipe `script`, checked: program, interpreter and arguments.

Its options are texts, since forms, flags and files hold those.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.config.arguments import split_arguments
from core.config.fields import FieldValue
from core.errors import ConfigError
from core.paths import typed_path
from core.training_python import training_python

RECIPE: Final = "script"
# Written for a chart it says: do not chart this.
DROP: Final = "-"
_NAME: Final = re.compile(r"[A-Za-z_][\w./@ -]{0,63}")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class UserScript:
    """A program of the user's own.

    Attributes:
        target: Its first words: the script, or ``-m`` and a module.
        plain: On one device, torchrun's variables are left out.
        charts: Printed name (as `plain` gives it) → chart; `DROP` leaves it out.
        stop_signal: ``auto``, ``interrupt``, ``terminate`` or ``none``.
    """

    python: str
    target: tuple[str, ...]
    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    plain: bool = False
    charts: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "auto"
    stop_deadline_s: float = 30.0

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.python, *self.target, *self.arguments)

    @property
    def name(self) -> str:
        """The file's name or the module's."""
        return Path(self.target[0]).name if len(self.target) == 1 else self.target[1]

    @property
    def project_folders(self) -> tuple[Path, ...]:
        """Folders of the person's own code: the script's and the one it runs in, links followed as well."""
        found = [self.folder, *(Path(target).parent for target in self.target if len(self.target) == 1)]
        return tuple(dict.fromkeys([*found, *(folder.resolve() for folder in found)]))


def read_script(options: Mapping[str, FieldValue], environment: Mapping[str, str] | None = None) -> UserScript:
    """The program that a run's options name; raises `ConfigError` for a missing script, interpreter or folder.

    `environment` has the run's variables (`RunConfig.env`).
    """
    script, module = _text(options, "script"), _text(options, "module")
    if bool(script) == bool(module):
        what = "Both a script and a module are named" if script else "No script is named"
        raise ConfigError("script", f"{what}.", "Give one: rankdeck run train.py, or rankdeck run -m package.module")
    if script:
        path = Path(script)
        _check_script(path)
        target: tuple[str, ...] = (str(path),)
    else:
        if not _MODULE.fullmatch(module):
            raise ConfigError(
                "module", f"{module!r} is not a module name.", "Write it as for python -m: package.module"
            )
        target = ("-m", module)
    folder = Path(_text(options, "working_directory") or (str(Path(script).parent) if script else str(Path.home())))
    if not folder.is_dir():
        raise ConfigError(
            "working_directory", f"There is no folder {folder}.", "Choose an existing folder to run it in."
        )
    deadline = options.get("stop_deadline_s", 30.0)
    return UserScript(
        python=_interpreter(_text(options, "python")),
        target=target,
        arguments=tuple(split_arguments(_text(options, "arguments"), "arguments")),
        folder=folder,
        environment=dict(environment or {}),
        plain=options.get("leave_out_torchrun_variables") is True,
        charts=parse_charts(_text(options, "charts")),
        stop_signal=_text(options, "stop_signal") or "auto",
        stop_deadline_s=float(deadline) if isinstance(deadline, int | float) else 30.0,
    )


def with_absolute_places(options: Mapping[str, FieldValue], folders: Sequence[Path]) -> dict[str, FieldValue]:
    """The options with script, interpreter and folder made absolute: a run's host lives in another folder.

    Relative ones may lie in any of `folders`; the first in which there is one counts.
    """
    found = dict(options)
    for name in ("script", "working_directory", "python"):
        text = _text(options, name)
        if not text or (name == "python" and not re.search(r"[/\\]", text)):
            # An interpreter without a folder is looked up on the path.
            continue
        path = typed_path(text)
        places = [folder / path for folder in folders]
        found[name] = os.path.abspath(next((place for place in places if place.exists()), places[0]))  # noqa: PTH100
    if _text(options, "module") and not _text(options, "working_directory"):
        found["working_directory"] = str(folders[0].absolute())
    return found


def _text(options: Mapping[str, FieldValue], name: str) -> str:
    value = options.get(name)
    return value.strip() if isinstance(value, str) else ""


def _check_script(path: Path) -> None:
    if path.is_dir():
        raise ConfigError("script", f"{path} is a folder, not a script.", "Name a Python file in it.")
    if not path.is_file():
        raise ConfigError("script", f"There is no file {path}.", "Check the path of the script.")


def _interpreter(text: str) -> str:
    """The interpreter's path; a venv's is kept as it is, since following its link would leave the environment."""
    if not text:
        return str(training_python().executable)
    found = shutil.which(text) if not re.search(r"[/\\]", text) else text
    path = Path(found) if found else None
    if path is not None and path.is_dir():  # an environment's folder
        inside = [path / "python.exe", path / "Scripts" / "python.exe", path / "bin" / "python"]
        path = next((place for place in inside if place.is_file()), None)
    if path is None or not path.is_file():
        raise ConfigError("python", f"There is no interpreter {text}.", "Choose a python.exe or bin/python.")
    if not os.access(path, os.X_OK):
        raise ConfigError("python", f"{path} cannot be executed.", "Choose a Python interpreter.")
    return str(path)


def plain(name: str) -> str:
    """A name as metrics have it: small letters, digits and underscores."""
    return re.sub(r"[^a-z0-9@]+", "_", name.strip().lower()).strip("_")[:64]


def charts_text(charts: Mapping[str, str]) -> str:
    """The inverse of `parse_charts`."""
    return ", ".join(f"{printed}={chart}" for printed, chart in charts.items())


def parse_charts(text: str) -> dict[str, str]:
    """``"train_loss=loss, acc1=accuracy, foo=-"`` as printed name (as `plain` gives it) → chart."""
    charts: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in re.split(r"[,;\n]", text))):
        printed, equals, chart = (piece.strip() for piece in part.partition("="))
        name = DROP if chart in ("", DROP) else plain(chart)
        if not equals or not _NAME.fullmatch(printed) or not name:
            raise ConfigError("charts", f"{part!r} is not NAME=CHART.", "For example: train_loss=loss")
        charts[plain(printed)] = name
    return charts
