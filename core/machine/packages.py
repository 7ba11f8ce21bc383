"""Optional packages: finds them, the extras of Rankdeck that hold them, and the command that installs them.

The contents of extras stand in `pyproject.toml` alone. A checkout has that file; an installed Rankdeck has the
metadata of its package. Nothing is imported, and nothing is installed here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import PreflightError
from core.formatting import listed
from core.held_files import read_utf8
from core.parsing import parse_toml
from core.paths import PACKAGE_FOLDER
from core.training_python import TrainingPython, own_python, training_python

DISTRIBUTION: Final = "rankdeck"
CHECKOUT: Final = PACKAGE_FOLDER
# Whose versions are kept beside what was trained or measured.
RECORDED: Final = (
    "torch", "numpy", "safetensors", "tokenizers", "deepspeed", "transformers", "accelerate", "psutil",
    "nvidia-ml-py", "orjson", "PySide6-Essentials",
)  # fmt: skip
_NOT_OFFERED: Final = ("test",)
_NAME: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_EXTRA: Final = re.compile(r"""\s*(?:and\s+)?\(?\s*extra\s*==\s*["']([\w.-]+)["']\s*\)?\s*$""")


class MissingPackageError(PreflightError):
    """Packages are missing in this Python; the window offers to install them.

    Args:
        what: Who needs them, as the beginning of a sentence: "The recipe GPT-2 from the Hub".
        instead: An alternative without them, if any.
    """

    title = "A package is missing"

    def __init__(self, packages: Iterable[str], what: str, instead: str = "") -> None:
        self.packages = tuple(packages)
        them, are, s = ("it", "is", "") if len(self.packages) == 1 else ("them", "are", "s")
        super().__init__(
            f"{what} needs the package{s} {listed(self.packages)}, which {are} not installed here.",
            f"Install {them}: {install_text(self.packages)}" + (f"; or {instead}" if instead else ""),
        )
        self.window_step = f"Install {them}" + (f", or {instead}" if instead else ".")

    @classmethod
    def of(cls, packages: Iterable[str], cause: str, next_step: str) -> MissingPackageError:
        """The same, in the words of another process."""
        error = cls(packages, "")
        error.cause, error.next_step = cause, next_step
        return error


@dataclass(frozen=True, slots=True)
class Offer:
    """A command that installs missing packages.

    Attributes:
        extras: The extras of Rankdeck that hold them; a package in none of them is installed by its name.
        argv: The command: this interpreter's pip.
    """

    packages: tuple[str, ...]
    extras: tuple[str, ...]
    argv: tuple[str, ...]


def missing_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """The names that the training Python cannot import. They are looked for again at every call, and not imported."""
    # A package may have come since this process began.
    importlib.invalidate_caches()
    python = training_python()
    return tuple(name for name in packages if not _is_in(python, name))


def check_packages(packages: Iterable[str], what: str) -> None:
    missing = missing_packages(packages)
    if missing:
        raise MissingPackageError(missing, what)


def installed_version(package: str, python: TrainingPython | None = None) -> str | None:
    """The version of a package in the training Python by default; None where it is missing or a bare folder."""
    found = (python or training_python()).distribution(package)
    return None if found is None else found.version


def recorded_versions() -> dict[str, str]:
    return {name: version for name in RECORDED if (version := installed_version(name)) is not None}


def installed_requires(package: str, python: TrainingPython | None = None) -> tuple[str, ...]:
    found = (python or training_python()).distribution(package)
    return () if found is None else tuple(found.requires or ())


def find_extras(checkout: Path = CHECKOUT) -> dict[str, tuple[str, ...]]:
    """Rankdeck's extras by name, each with its requirements; empty where neither source is there."""
    project = _project(checkout)
    if project:
        return {name: tuple(held) for name, held in project["optional-dependencies"].items()}
    return parse_requires(installed_requires(DISTRIBUTION, own_python()))


def _project(checkout: Path) -> dict[str, Any]:
    """The table of Rankdeck's project; empty outside a checkout."""
    try:
        project: dict[str, Any] = parse_toml(read_utf8(checkout / "pyproject.toml"))["project"]
        return project if project["name"] == DISTRIBUTION else {}
    except (OSError, ValueError, KeyError):
        return {}


def find_dependencies() -> tuple[str, ...]:
    """Rankdeck's own requirements; empty where neither a checkout nor its metadata has them."""
    if project := _project(CHECKOUT):
        return tuple(project["dependencies"])
    lines = installed_requires(DISTRIBUTION, own_python())
    return tuple(line for line in lines if _EXTRA.search(line.partition(";")[2]) is None)


def parse_requires(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The ``Requires-Dist`` lines of extras, as `find_extras` returns them.

    Args:
        lines: ``deepspeed>=0.16.5; sys_platform == "linux" and extra == "deepspeed"``.
    """
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        of_extra = _EXTRA.search(marker)
        if of_extra is None:
            continue
        rest = marker[: of_extra.start()].strip()
        rest = rest[1:-1] if rest.startswith("(") and rest.endswith(")") and rest.count("(") == 1 else rest
        text = f"{requirement.strip()}; {rest}" if rest else requirement.strip()
        found[of_extra[1]] = (*found.get(of_extra[1], ()), text)
    return found


def choose_extras(
    packages: Iterable[str], extras: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fewest extras that hold the packages, the smaller one of two that do.

    Returns:
        Names of extras, and the packages that are in none of them.
    """
    left = {plain_name(name): name for name in packages}
    holds = {
        name: {plain_name(found[1]) for line in held if (found := _NAME.match(line))}
        for name, held in extras.items()
        if name not in _NOT_OFFERED
    }
    chosen: list[str] = []
    while left and holds:
        best = max(holds, key=lambda name: (len(holds[name] & left.keys()), -len(holds[name])))
        if not holds[best] & left.keys():
            break
        chosen.append(best)
        left = {key: name for key, name in left.items() if key not in holds[best]}
    return tuple(sorted(chosen)), tuple(left.values())


def install_text(packages: Iterable[str], checkout: Path = CHECKOUT) -> str:
    """The command for people: ``pip install rankdeck[hf]``; in a checkout, which no index has, by its folder."""
    extras, others = choose_extras(packages, find_extras(checkout))
    is_checkout = (checkout / "pyproject.toml").is_file()
    wanted = f"{checkout}[{','.join(extras)}]" if is_checkout else f"{DISTRIBUTION}[{','.join(extras)}]"
    named = [f'-e "{wanted}"' if is_checkout else wanted] if extras else []
    return " ".join(["pip install", *named, *others])


def offer_for(packages: Iterable[str], checkout: Path = CHECKOUT) -> Offer:
    """The command that installs packages into this interpreter's environment, in the tested versions."""
    packages = tuple(packages)
    held = find_extras(checkout)
    extras, others = choose_extras(packages, held)
    # Double quotes inside a word need no care in a shell's single ones.
    wanted = dict.fromkeys([line.replace("'", '"') for name in extras for line in held[name]] + list(others))
    constraints = checkout / "constraints.txt"
    pins = ("-c", str(constraints)) if constraints.is_file() else ()
    pip = (str(training_python().executable), "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
    return Offer(packages, extras, (*pip, *pins, *wanted))


def _is_in(python: TrainingPython, name: str) -> bool:
    try:
        return python.find_module(name) is not None
    except (ImportError, ValueError):  # a parent that is missing; a module that was made by hand
        return False


def plain_name(name: str) -> str:
    """A name as pip compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
