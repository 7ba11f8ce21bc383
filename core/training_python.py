"""Training Python: the interpreter with PyTorch that starts hosts, ranks and probes.

In a checkout it is the Python that runs the window. An installed window has a small Python without PyTorch, and
training has another: the chosen one, or `RANKDECK_PYTHON`. Its packages are found by looking into its folders.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.held_files import read_utf8
from core.parsing import ParseError, parse_json
from core.paths import data_folder

if TYPE_CHECKING:
    import importlib.metadata

VARIABLE: Final = "RANKDECK_PYTHON"
FORMAT: Final = "rankdeck-training-python"


@dataclass(frozen=True, slots=True)
class TrainingPython:
    """An interpreter; `packages` is None for the Python that asks, which finds them by itself."""

    executable: Path
    packages: Path | None = None

    def find_module(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Find a module; neither it nor its parents are imported."""
        if self.packages is None:
            return importlib.util.find_spec(name)
        folders, spec = [str(self.packages)], None
        for part in name.split("."):
            spec = importlib.machinery.PathFinder.find_spec(part, folders)
            if spec is None:
                return None
            folders = list(spec.submodule_search_locations or ())
        return spec

    def distribution(self, package: str) -> importlib.metadata.Distribution | None:
        """Find an installed package's metadata; a bare folder has none."""
        # Brings an e-mail parser along; the window asks after its first picture.
        import importlib.metadata

        path = sys.path if self.packages is None else [str(self.packages)]
        return next(iter(importlib.metadata.distributions(name=package, path=path)), None)


def own_python() -> TrainingPython:
    """The Python that asks, which has the window's packages."""
    return TrainingPython(Path(sys.executable))


def training_python() -> TrainingPython:
    """Choose the interpreter to train with.

    This Python if it has PyTorch, so in a host or a rank always; else `RANKDECK_PYTHON`, else the chosen one. Where
    there is none, this Python, of which every check then says that it lacks PyTorch.
    """
    if importlib.util.find_spec("torch") is not None:  # finds, does not import
        return own_python()
    named = os.environ.get(VARIABLE, "").strip()
    executable = Path(named).expanduser().absolute() if named else chosen_python()
    if executable is None:
        return own_python()
    packages = package_folder(executable) if executable.is_file() else None
    return own_python() if packages is None else TrainingPython(executable, packages)


def why_variable_unused() -> str:
    """Explain in a sentence why the Python of `RANKDECK_PYTHON` does not train; empty where it does."""
    named = os.environ.get(VARIABLE, "").strip()
    executable = Path(named).expanduser().absolute()
    if not named or training_python().executable == executable:
        return ""
    if not executable.is_file() or package_folder(executable) is None:
        return f"The variable {VARIABLE} names {executable}, which is not a Python with packages."
    return f"The variable {VARIABLE} is not used, because this Python has PyTorch itself."


def choice_file() -> Path:
    return data_folder() / "training-python.json"


def chosen_python() -> Path | None:
    """The chosen interpreter; None where none was, or it is gone."""
    try:
        value = parse_json(read_utf8(choice_file()))
    except (OSError, ParseError, UnicodeDecodeError):
        return None
    text = value.get("executable") if isinstance(value, dict) and value.get("format") == FORMAT else None
    path = Path(text) if isinstance(text, str) else None
    return path if path is not None and path.is_absolute() and path.is_file() else None


def package_folder(executable: Path) -> Path | None:
    """The packages of an interpreter: beside it, or in its environment."""
    folder = executable.parent
    places = [folder / "Lib" / "site-packages", folder.parent / "Lib" / "site-packages"]
    if os.name != "nt":
        places = sorted(folder.parent.glob("lib/python3*/site-packages"), reverse=True)
    return next((place for place in places if place.is_dir()), None)
