"""Makes an environment: a Python of its own, the right PyTorch, Rankdeck's requirements, a self-test.

Each step leaves its result on disk, so an environment whose making was stopped or killed is completed by making it
again: downloaded files are not downloaded again. Existing environments are never touched.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.environments.downloads import CancelledError, copy_local, download
from core.environments.plan import UNPACKED, Plan, Wanted, make_plan
from core.environments.programs import (
    LOG,
    EnvironmentFailedError,
    clean_environment,
    has_pip,
    pip_of,
    run_pip,
    run_program,
)
from core.environments.record import (
    DOWNLOADS,
    Environment,
    Record,
    clean_up,
    executable_in,
    read_environment,
    write_record,
)
from core.errors import PreflightError, UsageError
from core.files.atomic import explained
from core.formatting import byte_size
from core.held_files import remove_folder
from core.machine.drives import free_bytes
from core.processes.program_environment import program_environment

RESERVE: Final = 500 << 20
_PYTHON_LIMIT_S: Final = 600.0
_CHECK_LIMIT_S: Final = 300.0
CHECK: Final = ("-m", "workers.programs.environment_check_main")


@dataclass(frozen=True, slots=True)
class Progress:
    """A step as text, and the bytes of its download; `total` is 0 where that is not known."""

    doing: str
    done: int = 0
    total: int = 0

    @property
    def text(self) -> str:
        whole = f" of {byte_size(self.total)}" if self.total else ""
        return f"{self.doing}: {byte_size(self.done)}{whole}" if self.done or self.total else self.doing


Report = Callable[[Progress], None]
Cancelled = Callable[[], bool]


def make(wanted: Wanted, report: Report, cancelled: Cancelled) -> Environment:
    """Make or complete an environment. Blocks; may be called from any thread.

    Raises:
        UsageError: There is a complete one of that name.
        EnvironmentFailedError, DownloadError, PreflightError: It cannot be made; the sentence says why.
        CancelledError: `cancelled`; what was done so far stays.
    """
    clean_up(wanted.folder.parent)
    there = read_environment(wanted.folder)
    if there is not None and there.record.state == "ready":
        raise UsageError(f"{wanted.folder.name} is there already.", "Give another name, or remove it.")
    version = ".".join(map(str, sys.version_info[:3]))
    record = Record("making", version, extras=wanted.extras, created=time.time())
    write_record(wanted.folder, record)
    report(Progress("Copying Python"))
    python = _make_python(wanted.folder, cancelled)
    plan = make_plan(pip_of(python), wanted, lambda step: report(Progress(step)), cancelled)
    files = _fetch(plan, wanted.folder, report, cancelled)
    report(Progress(f"Installing {len(files)} package{'' if len(files) == 1 else 's'}"))
    arguments = ["install", "--no-index", "--no-deps", "--no-warn-script-location", *map(str, files)]
    run_pip(pip_of(python), wanted.folder, arguments, cancelled)
    report(Progress("Testing it"))
    answer = check(python, wanted.folder, cancelled)
    found = Environment(wanted.folder, replace(record, state="ready", torch=str(answer["torch"])))
    write_record(wanted.folder, found.record)
    shutil.rmtree(wanted.folder / DOWNLOADS, ignore_errors=True)
    return found


def _make_python(folder: Path, cancelled: Cancelled) -> Path:
    """Make a Python with pip and nothing else; an existing one is kept.

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


def _fetch(plan: Plan, folder: Path, report: Report, cancelled: Cancelled) -> list[Path]:
    if cancelled():
        raise CancelledError
    check_disk(plan, folder)
    total, done = 0 if None in plan.sizes else sum(size or 0 for size in plan.sizes), 0

    def arrived(count: int) -> None:
        nonlocal done
        done += count
        report(Progress("Downloading", done, total))

    files = []
    for wheel in sorted(plan.wheels, key=lambda wheel: wheel.name.lower()):
        path = wheel.local_path
        if path is None:
            files.append(download(wheel, folder / DOWNLOADS, arrived, cancelled))
        else:
            files.append(copy_local(path, folder / DOWNLOADS))
            arrived(path.stat().st_size)
    return files


def needed_bytes(plan: Plan, folder: Path) -> int:
    """The room for making it: files and their content, less the downloads so far."""
    arrived = 0
    with contextlib.suppress(OSError):
        arrived = sum(path.stat().st_size for path in (folder / DOWNLOADS).iterdir())
    files = sum(size or 0 for size in plan.sizes)
    return max(0, files - arrived) + int(UNPACKED * files) + RESERVE


def check_disk(plan: Plan, folder: Path) -> None:
    """Refuse a drive without room; raises `PreflightError`."""
    needed, free = needed_bytes(plan, folder), free_bytes(folder)
    if free is not None and free < needed:
        raise PreflightError(
            f"The environment needs about {byte_size(needed)} on its drive, and {byte_size(free)} are free.",
            "Free some space, or choose another drive.",
            title="Not enough disk space",
        )


def check(python: Path, folder: Path, cancelled: Cancelled) -> dict[str, object]:
    """Test an environment and return its answer; raises `EnvironmentFailedError`."""
    env = program_environment(clean_environment())
    answer = run_program((str(python), *CHECK), folder, env, _CHECK_LIMIT_S, cancelled)
    if answer.values is None or "torch" not in answer.values:
        raise EnvironmentFailedError(
            f"Its self-test failed ({answer.failure}).",
            f"See {folder / LOG}. The environment that was chosen before is unchanged.",
        )
    return answer.values
