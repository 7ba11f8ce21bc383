"""Contents of an environment for training: PyTorch for this machine, requirements of ranks, and extras."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.environments.plan import Wanted
from core.environments.record import RECORD, Environment, executable_in, read_environment
from core.errors import PreflightError, UsageError
from core.formatting import listed
from core.held_files import read_utf8
from core.machine.packages import choose_extras, find_dependencies, find_extras, plain_name
from core.machine.torch_builds import (
    ROCM_TAG,
    NvidiaDriver,
    choose_build,
    pinned_torch_version,
    torch_sources,
)
from core.paths import PACKAGE_FOLDER
from core.recipes.manifest import Recipe
from core.training_python import training_python

CONSTRAINTS: Final = PACKAGE_FOLDER / "constraints.txt"
BUILDS: Final = ("auto", "cpu", "cu126", "cu130", ROCM_TAG)
# The window's own, and DeepSpeed: for Linux there is only its source.
_LEFT_OUT: Final = ("pyside6-essentials", "pyqtgraph", "deepspeed")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
_TITLES: Final = {
    "hf": "Hugging Face models, LoRA and datasets",
    "rl": "Reinforcement learning with PPO (Gymnasium)",
    "bpe": "BPE tokens for MiniGPT",
    "data": "Parquet files as data",
}
OFFERED: Final = tuple(_TITLES)


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages that can be added to an environment.

    Attributes:
        name: As in `pyproject.toml`.
        title: Its check box.
        note: The recipes that need it, in a sentence; empty where none does.
    """

    name: str
    title: str
    note: str = ""


def list_extras(recipes: Iterable[Recipe], held: Mapping[str, tuple[str, ...]]) -> tuple[Extra, ...]:
    """List the extras in the order in which they are shown; a broken recipe needs none.

    Args:
        held: The requirements in each extra of Rankdeck.
    """
    users: dict[str, list[str]] = {}
    for recipe in recipes:
        needed = choose_extras(recipe.requires, held)[0] if not recipe.problem and recipe.requires else ()
        for name in needed:
            users.setdefault(name, []).append(recipe.title)
    notes = {name: f"Needed by {listed(titles)}." for name, titles in users.items()}
    return tuple(Extra(name, _TITLES[name], notes.get(name, "")) for name in OFFERED if name in held)


def wanted_for(
    folder: Path, build: str, extras: Iterable[str], driver: NvidiaDriver | None, index: str | None, wheels: Path | None
) -> Wanted:
    """Describe an environment to make.

    Args:
        build: One of `BUILDS`; "auto" is the one for this driver, for the CPU where there is none.
        extras: Of `OFFERED`.
        index: The package index for PyTorch that the person named; None: those that have the build.
        wheels: A folder to take everything from.

    Raises:
        UsageError: An extra does not exist.
        PreflightError: The build cannot be had on this machine.
    """
    extras = tuple(sorted(set(extras)))
    held = find_extras()
    if unknown := [name for name in extras if name not in OFFERED or name not in held]:
        raise UsageError(f"There is no extra {unknown[0]!r:.80}.", f"Choose from {listed(OFFERED)}.")
    if build == ROCM_TAG and sys.platform != "linux":
        raise PreflightError(
            "PyTorch's ROCm builds are for Linux only.",
            "Choose the build auto.",
            title="There is no wheel for this machine",
        )
    torch = torch_sources(sys.platform, pinned_torch(), _tag(build, driver), index)
    return Wanted(folder, torch, requirements(find_dependencies(), held, extras), extras, wheels, CONSTRAINTS)


def requirements(
    dependencies: Iterable[str], held: Mapping[str, tuple[str, ...]], extras: Iterable[str]
) -> tuple[str, ...]:
    """pip's requirements once PyTorch is there: Rankdeck's own, and those of the wanted extras."""
    found = [line for line in dependencies if _name(line) not in _LEFT_OUT]
    return tuple(dict.fromkeys([*found, *(line for extra in extras for line in held[extra])]))


def default_name(build: str, driver: NvidiaDriver | None) -> str:
    return f"torch-{pinned_torch()}-{_tag(build, driver)}"


def pinned_torch() -> str:
    return pinned_torch_version(read_utf8(CONSTRAINTS))


def outdated_text(environment: Environment) -> str:
    """Compare an environment's PyTorch with the tested one, as text; empty where they are the same."""
    has = environment.record.torch.partition("+")[0]
    return "" if has in ("", pinned_torch()) else f"It has torch {has}; this Rankdeck is tested with {pinned_torch()}."


def present_outdated_text() -> str:
    """As `outdated_text`, of the environment that trains now; empty where that is not one of ours."""
    executable = training_python().executable
    folder = next((place for place in executable.parents if (place / RECORD).is_file()), None)
    found = None if folder is None else read_environment(folder)
    if found is None or executable_in(found.folder) != executable:
        return ""
    text = outdated_text(found)
    return text and f"Your environment {found.name} is from an earlier Rankdeck. {text}"


def _tag(build: str, driver: NvidiaDriver | None) -> str:
    return choose_build(driver).tag if build == "auto" else build


def _name(requirement: str) -> str:
    found = _NAME.match(requirement.strip())
    return "" if found is None else plain_name(found[0])
