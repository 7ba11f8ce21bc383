"""Makes an environment: a Python of its own, the right PyTorch, what Rankdeck needs, a self-test.

Each step leaves on disk what the next one needs, so an environment whose making was stopped or killed is completed by
making it again: files that have arrived are not downloaded again. Environments that are there are never touched.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from core.environments.downloads import CancelledError, copy_local, download, size_of, text_of
from core.environments.pip_report import ReportError, Wheel, parse_report
from core.environments.programs import (
    LOG,
    EnvironmentFailedError,
    PipFailedError,
    clean_environment,
    has_pip,
    run_pip,
    run_program,
)
from core.environments.record import DOWNLOADS, Environment, Record, executable_in, read_environment, write_record
from core.errors import PreflightError, UsageError
from core.files.atomic import explained
from core.formatting import byte_size
from core.held_files import read_utf8, remove_folder
from core.machine.torch_builds import TorchSource
from core.processes.program_environment import program_environment

UNPACKED: Final = 4.0
"""Bytes on disk per byte of a wheel while it is installed: the file and, three times as large, its contents."""
RESERVE: Final = 500 << 20
_WHEELS_ONLY: Final = ("--only-binary", ":all:")
_PYTHON_LIMIT_S: Final = 600.0
_CHECK_LIMIT_S: Final = 300.0
CHECK: Final = ("-m", "workers.programs.environment_check_main")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make.

    Attributes:
        folder: Where.
        torch: The builds of PyTorch that suit this machine, best first.
        requirements: What else pip is asked for.
        extras: Names of Rankdeck's extras that are among them.
        wheels: A folder of wheels to take everything from, without a network.
        constraints: The versions that were tested.
    """

    folder: Path
    torch: tuple[TorchSource, ...]
    requirements: tuple[str, ...]
    extras: tuple[str, ...]
    wheels: Path | None
    constraints: Path


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is.

    Attributes:
        doing: The step, as text.
        done: Bytes that have arrived.
        total: Bytes in all; 0 where that is not known.
    """

    doing: str
    done: int = 0
    total: int = 0

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.doing}: {text_of(self.done, self.total)}" if self.done or self.total else self.doing


Report = Callable[[Progress], None]
Cancelled = Callable[[], bool]


def make(wanted: Wanted, report: Report, cancelled: Cancelled) -> Environment:
    """Makes or completes an environment. Blocks; may be called from any thread.

    Raises:
        UsageError: There is a complete one of that name.
        EnvironmentFailedError, DownloadError, PreflightError: It cannot be made; the sentence says why.
        CancelledError: `cancelled`; what was done so far stays.
    """
    there = read_environment(wanted.folder)
    if there is not None and there.record.state == "ready":
        raise UsageError(f"{wanted.folder.name} is there already.", "Give another name, or remove it.")
    version = ".".join(map(str, sys.version_info[:3]))
    record = Record("making", version, extras=wanted.extras, created=time.time())
    write_record(wanted.folder, record)
    report(Progress("Copying Python"))
    python = _make_python(wanted.folder, cancelled)
    install = _Installation(python, wanted, report, cancelled)
    install.torch()
    install.rest()
    report(Progress("Testing it"))
    answer = check(python, wanted.folder, cancelled)
    found = Environment(wanted.folder, replace(record, state="ready", torch=str(answer["torch"])))
    write_record(wanted.folder, found.record)
    shutil.rmtree(wanted.folder / DOWNLOADS, ignore_errors=True)
    return found


def _make_python(folder: Path, cancelled: Cancelled) -> Path:
    """A Python with pip and nothing else; one that is there is kept.

    Under Windows it is a copy of the installed program's, which an upgrade of that replaces; elsewhere a venv.
    """
    python = executable_in(folder)
    if has_pip(python, folder, cancelled):
        return python
    root = folder / "python"
    with explained(f"{root} could not be written"):
        if root.exists():
            remove_folder(root)
        if sys.platform == "win32":
            base = Path(sys.base_prefix)
            shutil.copytree(base, root, ignore=lambda path, _: _not_copied(Path(path), base))
    command = (sys.executable, "-m", "venv", str(root)) if sys.platform != "win32" else (str(python), "-m", "ensurepip")
    run_program(command, folder, clean_environment(), _PYTHON_LIMIT_S, cancelled)
    if not has_pip(python, folder, cancelled):
        raise EnvironmentFailedError(
            f"Python could not be set up in {folder}.",
            f"Check that the disk is not full, and see {folder / LOG}.",
        )
    return python


def _not_copied(folder: Path, base: Path) -> list[str]:
    if folder.name == "__pycache__":
        return [path.name for path in folder.iterdir()]
    packages = folder == base / "Lib" / "site-packages"
    return [path.name for path in folder.iterdir()] if packages or folder == base / "Scripts" else []


@dataclass(frozen=True, slots=True)
class _Installation:
    """PyTorch and then what else is needed, so that pip does not look for PyTorch's own packages in the wrong index."""

    python: Path
    wanted: Wanted
    report: Report
    cancelled: Cancelled

    def torch(self) -> None:
        """Installs the first build that an index has."""
        sources = self.wanted.torch
        for number, source in enumerate(sources):
            self.report(Progress(f"Looking for {source.label}"))
            try:
                self._install(["--no-deps", source.requirement], source.index)
            except PipFailedError as error:
                if number + 1 == len(sources) or not error.missing:
                    raise
            else:
                return

    def rest(self) -> None:
        """Installs everything else."""
        self.report(Progress("Looking for the other packages"))
        self._install(list(self.wanted.requirements), None)

    def _install(self, requirements: list[str], index: str | None) -> None:
        wheels = self._resolve(requirements, index)
        files = _fetch(wheels, self.wanted.folder, self.report, self.cancelled)
        if files:
            self.report(Progress(f"Installing {len(files)} package{'' if len(files) == 1 else 's'}"))
            arguments = ["install", "--no-index", "--no-deps", "--no-warn-script-location", *map(str, files)]
            run_pip(self.python, self.wanted.folder, arguments, self.cancelled)

    def _resolve(self, requirements: list[str], index: str | None) -> tuple[Wheel, ...]:
        wheels, listing = self.wanted.wheels, self.wanted.folder / "report.json"
        source = ["--index-url", index] if index else []
        source = ["--no-index", "--find-links", str(wheels)] if wheels is not None else source
        command = ["install", "--dry-run", "--report", str(listing), *_WHEELS_ONLY, "-c", str(self.wanted.constraints)]
        try:
            run_pip(self.python, self.wanted.folder, [*command, *source, *requirements], self.cancelled)
            return parse_report(read_utf8(listing))
        except ReportError as error:
            raise EnvironmentFailedError(f"{error}.", "Try again; if it happens again, report it.") from error
        finally:
            listing.unlink(missing_ok=True)


def _fetch(wheels: Sequence[Wheel], folder: Path, report: Report, cancelled: Cancelled) -> list[Path]:
    """All files, on this machine."""
    local = {wheel: _local(wheel) for wheel in wheels}
    sizes = []
    for wheel in wheels:
        path = local[wheel]
        sizes.append(size_of(wheel) if path is None else path.stat().st_size)
        if cancelled():
            raise CancelledError
    total, done = sum(sizes), 0
    _check_disk(folder, total)

    def arrived(count: int) -> None:
        nonlocal done
        done += count
        report(Progress("Downloading", done, total))

    files = []
    for wheel in sorted(wheels, key=lambda wheel: wheel.name.lower()):
        path = local[wheel]
        if path is None:
            files.append(download(wheel, folder / DOWNLOADS, arrived, cancelled))
        else:
            files.append(copy_local(path, folder / DOWNLOADS))
            arrived(path.stat().st_size)
    return files


def _local(wheel: Wheel) -> Path | None:
    parts = urlsplit(wheel.url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _check_disk(folder: Path, total: int) -> None:
    needed = int(total * UNPACKED) + RESERVE
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise PreflightError(
            f"The environment needs about {byte_size(needed)} on its drive, and {byte_size(free)} are free.",
            "Free some space, or choose another drive.",
            title="Not enough disk space",
        )


def check(python: Path, folder: Path, cancelled: Cancelled) -> dict[str, object]:
    """Tests an environment; returns what it said.

    Raises:
        EnvironmentFailedError: It does not work.
    """
    env = program_environment(clean_environment())
    answer = run_program((str(python), *CHECK), folder, env, _CHECK_LIMIT_S, cancelled)
    if answer.values is None or "torch" not in answer.values:
        raise EnvironmentFailedError(
            f"Its self-test failed ({answer.failure}).",
            f"See {folder / LOG}. The environment that was chosen before is unchanged.",
        )
    return answer.values
