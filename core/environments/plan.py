"""Plan of an environment: the files that pip would install and their sizes, before any is downloaded.

pip is asked in two steps: PyTorch from the index that has its build, then the rest from the usual one. In the second
step a file with nothing but PyTorch's metadata stands in for it, so that pip looks neither for another PyTorch nor for
the requirements of the wrong build.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.environments.pip_environment import source_options
from core.environments.pip_report import ReportError, Wheel, file_sizes, parse_report
from core.environments.programs import EnvironmentFailedError, PipFailedError, run_pip
from core.held_files import read_utf8
from core.machine.torch_builds import PYTORCH_INDEX, ROCM_TAG, TorchSource

TORCH: Final = "torch"
_WHEELS_ONLY: Final = ("--only-binary", ":all:")
# An index that does not have a wheel's metadata in a file of its own is asked for the end of the wheel.
_METADATA_ONLY: Final = ("--use-feature", "fast-deps")
_STAND_IN: Final = "stand-in"
# Bytes of an installed wheel per byte of its file: 2.3 for PyTorch with CUDA 13 and the extra hf, byte code included.
UNPACKED: Final = 2.5


@dataclass(frozen=True, slots=True)
class Wanted:
    """An environment to make.

    Attributes:
        torch: The builds of PyTorch that suit this machine, best first.
        requirements: The other requirements for pip.
        extras: Names of Rankdeck's extras that are among them.
        wheels: A folder of wheels to take everything from, without a network.
        constraints: The file of tested versions.
    """

    folder: Path
    torch: tuple[TorchSource, ...]
    requirements: tuple[str, ...]
    extras: tuple[str, ...]
    wheels: Path | None
    constraints: Path


@dataclass(frozen=True, slots=True)
class Plan:
    """The files of an installation, and the bytes of each; None where its server does not say."""

    wheels: tuple[Wheel, ...]
    sizes: tuple[int | None, ...]


Report = Callable[[str], None]
Cancelled = Callable[[], bool]


def make_plan(pip: Sequence[str], wanted: Wanted, report: Report, cancelled: Cancelled) -> Plan:
    """Ask pip for its plan. Nothing is installed, and no wheel downloaded if the index has its metadata.

    Raises:
        PipFailedError, EnvironmentFailedError: It cannot be made so; the sentence says why.
        CancelledError: `cancelled`.
    """
    torch, stand_in = _find_torch(pip, wanted, report, cancelled), wanted.folder / _STAND_IN
    report("Looking for the other packages")
    try:
        requirement = f"{TORCH} @ {_write_stand_in(torch, stand_in).as_uri()}"
        options = options_beside(torch, wanted.wheels)
        rest = _resolve(pip, [*options, requirement, *wanted.requirements], wanted, None, cancelled)
    finally:
        shutil.rmtree(stand_in, ignore_errors=True)
    wheels = (torch, *(wheel for wheel in rest if wheel.name.lower() != TORCH))
    report("Asking for sizes")
    return Plan(wheels, file_sizes(wheels, cancelled))


def options_beside(torch: Wheel, wheels: Path | None) -> list[str]:
    """pip's options for further indexes: a ROCm build needs a Triton of its own index."""
    needs_index = torch.version.endswith(ROCM_TAG) and wheels is None
    return ["--extra-index-url", f"{PYTORCH_INDEX}/{ROCM_TAG}"] if needs_index else []


def _find_torch(pip: Sequence[str], wanted: Wanted, report: Report, cancelled: Cancelled) -> Wheel:
    for number, source in enumerate(wanted.torch):
        report(f"Looking for {source.label}")
        try:
            found = _resolve(pip, ["--no-deps", source.requirement], wanted, source.index, cancelled)
        except PipFailedError as error:
            if number + 1 == len(wanted.torch) or not error.missing:
                raise
        else:
            return found[0]
    raise EnvironmentFailedError("There is no build of PyTorch to look for.", "Choose another build.")


def _resolve(
    pip: Sequence[str],
    requirements: Sequence[str],
    wanted: Wanted,
    index: str | None,
    cancelled: Cancelled,
) -> tuple[Wheel, ...]:
    listing = wanted.folder / "report.json"
    command = ["install", "--dry-run", "--ignore-installed", "--report", str(listing), *_WHEELS_ONLY, *_METADATA_ONLY]
    constraints = ["-c", str(wanted.constraints)]
    try:
        source = source_options(wanted.wheels, index)
        run_pip(pip, wanted.folder, [*command, *constraints, *source, *requirements], cancelled)
        found = parse_report(read_utf8(listing))
    except PipFailedError as error:
        if wanted.wheels is None or not error.requirement:
            raise
        raise _not_in_folder(wanted.wheels, error.requirement) from error
    except ReportError as error:
        raise EnvironmentFailedError(f"{error}.", "Try again; if it happens again, report it.") from error
    finally:
        with contextlib.suppress(OSError):  # a scanner holds it
            listing.unlink(missing_ok=True)
    if not found:
        raise EnvironmentFailedError("pip named no files.", "Try again; if it happens again, report it.")
    return found


def _not_in_folder(wheels: Path, requirement: str) -> PipFailedError:
    return PipFailedError(
        f"{wheels} has no wheel of {requirement} for this Python and platform.",
        "Copy it into that folder, or choose another one, then continue.",
        missing=True,
        requirement=requirement,
    )


def _write_stand_in(torch: Wheel, folder: Path) -> Path:
    """Write a wheel with a package's metadata and nothing else."""
    info = f"{TORCH}-{torch.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {TORCH}",
        f"Version: {torch.version}",
        *(f"Requires-Dist: {line}" for line in torch.requires),
    ]
    tag = f"py{sys.version_info[0]}-none-any"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{TORCH}-{torch.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
