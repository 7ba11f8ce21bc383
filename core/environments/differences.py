"""Differences between an environment and what this Rankdeck is tested with, after an upgrade. Nothing is changed."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.environments.record import RECORD, Environment, executable_in, list_environments, read_environment
from core.formatting import listed
from core.held_files import read_utf8
from core.machine.packages import plain_name
from core.training_python import package_folder, training_python

_PIN: Final = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)(?:\s*;\s*(.*))?$", re.MULTILINE)
_SYSTEM: Final = re.compile(r"sys_platform\s*==\s*['\"](\w+)['\"]")
_SHOWN: Final = 3
_IMPORTANT: Final = ("torch", "numpy", "transformers", "datasets", "gymnasium", "deepspeed")


@dataclass(frozen=True, slots=True)
class Difference:
    """A package in another version.

    Attributes:
        package: Its name.
        has: The version in the environment.
        tested: The one that this Rankdeck is tested with.
    """

    package: str
    has: str
    tested: str


def find_differences(environment: Environment, constraints: Path | None = None) -> tuple[Difference, ...]:
    """Packages that this Rankdeck is tested with in another version, the important ones first.

    Args:
        environment: Which.
        constraints: The tested versions; None: those of this Rankdeck.
    """
    from core.environments.wanted import CONSTRAINTS

    packages = package_folder(executable_in(environment.folder))
    if packages is None:
        return ()
    try:
        text = read_utf8(constraints or CONSTRAINTS)
    except OSError:
        return ()
    found = importlib.metadata.distributions(path=[str(packages)])
    return compare({one.name: one.version for one in found if one.name}, parse_pins(text))


def find_suitable(parent: Path, name: str, extras: Iterable[str]) -> Environment | None:
    """An environment that is there already and needs nothing: complete, with these extras and the tested versions.

    Args:
        parent: The folder of environments.
        name: What one of this build is called; "NAME-2" and so on are others of it.
        extras: Names of its extras.
    """
    wanted = set(extras)
    for one in list_environments(parent):
        number = one.name.removeprefix(f"{name}-")
        is_same_build = one.name == name or number.isdigit()
        has_all = one.record.state == "ready" and wanted <= set(one.record.extras)
        if is_same_build and has_all and not find_differences(one):
            return one
    return None


def present_differences() -> str:
    """What differs in the environment that trains now, as text; empty where nothing does, or it is not one of ours."""
    executable = training_python().executable
    folder = next((place for place in executable.parents if (place / RECORD).is_file()), None)
    found = None if folder is None else read_environment(folder)
    if found is None or executable_in(found.folder) != executable:
        return ""
    text = differences_text(find_differences(found))
    return text and f"Your environment {found.name} is from an earlier Rankdeck. {text}"


def parse_pins(constraints: str, system: str = sys.platform) -> dict[str, str]:
    """Tested versions by plain name.

    Args:
        constraints: Lines such as ``numpy==2.4.6`` and ``deepspeed==0.16.5; sys_platform == 'win32'``.
        system: `sys.platform`.
    """
    pins = {}
    for name, version, marker in _PIN.findall(constraints):
        wanted = _SYSTEM.search(marker)
        if wanted is None or wanted[1] == system:
            pins[plain_name(name)] = version
    return pins


def compare(installed: Mapping[str, str], pins: Mapping[str, str]) -> tuple[Difference, ...]:
    """Those packages whose version is another one; a build of PyTorch ("+cu130") is the same version.

    Args:
        installed: Versions by name.
        pins: As `parse_pins` gives them.
    """
    found = [
        Difference(name, version, pins[plain_name(name)])
        for name, version in installed.items()
        if plain_name(name) in pins and version.partition("+")[0] != pins[plain_name(name)]
    ]
    return tuple(sorted(found, key=lambda one: (one.package not in _IMPORTANT, one.package.lower())))


def differences_text(differences: Iterable[Difference]) -> str:
    """ "It has torch 2.12.0; this Rankdeck is tested with 2.13.0."; empty where there are none."""
    found = list(differences)
    if not found:
        return ""
    has = listed([f"{one.package} {one.has}" for one in found[:_SHOWN]])
    tested = listed([one.tested for one in found[:_SHOWN]])
    more = f" {len(found) - _SHOWN} more packages differ." if len(found) > _SHOWN else ""
    return f"It has {has}; this Rankdeck is tested with {tested}.{more}"
