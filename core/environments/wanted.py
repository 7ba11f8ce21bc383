"""Contents of an environment for training: PyTorch for this machine, what ranks need, and extras."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from core.environments.deepspeed_wheels import why_no_wheel
from core.environments.extras import DEEPSPEED, OFFERED
from core.environments.plan import Wanted
from core.errors import PreflightError, UsageError
from core.formatting import listed
from core.held_files import read_utf8
from core.machine.packages import find_dependencies, find_extras, plain_name
from core.machine.torch_builds import (
    ROCM_TAG,
    NvidiaDriver,
    TorchSource,
    choose_build,
    pinned_torch_version,
    torch_sources,
)
from core.paths import PACKAGE_FOLDER

CONSTRAINTS: Final = PACKAGE_FOLDER / "constraints.txt"
BUILDS: Final = ("auto", "cpu", "cu126", "cu130", ROCM_TAG)
# The window's own, and what is an extra here: for Linux there is only its source.
_LEFT_OUT: Final = ("pyside6-essentials", "pyqtgraph", "deepspeed")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")


def wanted_for(
    folder: Path, build: str, extras: Iterable[str], driver: NvidiaDriver | None, index: str | None, wheels: Path | None
) -> Wanted:
    """What to make.

    Args:
        folder: Where.
        build: One of `BUILDS`; "auto" is the one for this driver, for the CPU where there is none.
        extras: Of `OFFERED`.
        driver: The NVIDIA driver; None where there is none.
        index: The package index for PyTorch that the person named; None: those that have the build.
        wheels: A folder to take everything from.

    Raises:
        UsageError: An extra does not exist.
        PreflightError: An extra or the build cannot be had on this machine.
    """
    extras = tuple(sorted(set(extras)))
    held = find_extras()
    if unknown := [name for name in extras if name not in OFFERED or name not in held]:
        raise UsageError(f"There is no extra {unknown[0]!r:.80}.", f"Choose from {listed(OFFERED)}.")
    why_not = why_no_wheel(sys.platform, sys.version_info[:2]) if DEEPSPEED in extras else ""
    if why_not:
        raise PreflightError(
            f"DeepSpeed cannot be added here. {why_not}",
            "Leave it out: ZeRO trains with PyTorch's own engine.",
            title="There is no wheel for this machine",
        )
    if build == ROCM_TAG and sys.platform != "linux":
        raise PreflightError(
            "PyTorch's ROCm builds are for Linux only.",
            "Choose the build auto.",
            title="There is no wheel for this machine",
        )
    version = pinned_torch_version(read_utf8(CONSTRAINTS))
    torch = _torch(version, build, driver, index)
    return Wanted(folder, torch, requirements(find_dependencies(), held, extras), extras, wheels, CONSTRAINTS)


def requirements(
    dependencies: Iterable[str], held: Mapping[str, tuple[str, ...]], extras: Iterable[str]
) -> tuple[str, ...]:
    """What pip is asked for once PyTorch is there, whose own packages are among what it finds.

    Args:
        dependencies: Rankdeck's own.
        held: What each extra holds.
        extras: The wanted ones.
    """
    found = [line for line in dependencies if _name(line) not in _LEFT_OUT]
    return tuple(dict.fromkeys([*found, *(line for extra in extras for line in held[extra])]))


def default_name(build: str, driver: NvidiaDriver | None) -> str:
    """ "torch-2.13.0-cu130"."""
    version = pinned_torch_version(read_utf8(CONSTRAINTS))
    return f"torch-{version}-{_tag(build, driver)}"


def _torch(version: str, build: str, driver: NvidiaDriver | None, index: str | None) -> tuple[TorchSource, ...]:
    return torch_sources(sys.platform, version, _tag(build, driver), index)


def _tag(build: str, driver: NvidiaDriver | None) -> str:
    return choose_build(driver).tag if build == "auto" else build


def _name(requirement: str) -> str:
    found = _NAME.match(requirement.strip())
    return "" if found is None else plain_name(found[0])
