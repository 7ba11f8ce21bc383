"""The checkout's `.venv`: checks whether it is whole and current, and makes it.

A file inside it says what was installed. It says "installing" from before the first file is written until
after the last one, so an environment that was half made when something was killed is never taken for a
whole one: it is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from core.environments.pip_environment import ENV_WHEELS, variable_faults, wheels_folder
from core.held_files import retried
from core.machine.torch_builds import has_nvidia_driver
from installer.console import ProgressLine, SetupError

LAYOUT: Final = 1
LOCK_LIMIT_S: Final = 1800.0
ORPHANS_LIMIT_S: Final = 60.0
NEEDED_GB: Final = 3.0
NEEDED_GB_WITH_CUDA: Final = 10.0


class Environment:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.log = self.folder / "bootstrap.log"
        self._state_file = self.folder / "rankdeck-venv.json"
        self._constraints = root / "constraints.txt"
        self._nvidia = has_nvidia_driver(sys.platform)
        # Descriptors that programs which write into the environment must hold: see `_lock`.
        self.inherited: tuple[int, ...] = ()

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @property
    def site_packages(self) -> Path:
        if sys.platform == "win32":
            return self.folder / "Lib" / "site-packages"
        return self.folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"

    # --- what is there -----------------------------------------------------------------------------------

    def is_ready(self, extras: frozenset[str]) -> bool:
        """True if it is whole, made from the present requirements of the checkout, and has these extras."""
        state = self._read_state()
        return (
            state.get("state") == "ready"
            and state.get("base") == self._base()
            and state.get("requirements") == self._requirements_hash()
            and extras <= set(state.get("extras", ()))
            and self.python.exists()
        )

    def note_qt(self) -> None:
        """Remember that Qt's system libraries are there."""
        self._write_state({**self._read_state(), "qt": True})

    def has_qt(self) -> bool:
        return bool(self._read_state().get("qt"))

    def _base(self) -> dict[str, Any]:
        """The properties that an environment cannot change: with another one it is made from nothing."""
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return {
            "layout": LAYOUT,
            "python": version,
            "root": str(self.root),
            "platform": sys.platform,
            "nvidia": self._nvidia,
        }

    def _requirements_hash(self) -> str:
        # Here, because old Pythons have none and are told so before.
        import tomllib

        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        parts = [project["project"], project["build-system"], project["tool"]["hatch"]]
        text = json.dumps(parts, sort_keys=True) + self._constraints.read_text(encoding="utf-8")
        return hashlib.sha256(text.encode()).hexdigest()

    def _read_state(self) -> dict[str, Any]:
        try:
            value = json.loads(self._state_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def _write_state(self, state: dict[str, Any]) -> None:
        fresh = self._state_file.with_suffix(".new")
        fresh.write_text(json.dumps(state), encoding="utf-8", newline="\n")
        retried(lambda: fresh.replace(self._state_file))

    # --- making it ---------------------------------------------------------------------------------------

    def make_ready(self, extras: frozenset[str], progress: ProgressLine) -> None:
        """Make or update the environment; of several processes that want to, one does and the others wait."""
        _check_machine()
        with self._lock(progress):
            if not self.is_ready(extras):
                self._build(extras, progress)

    def _build(self, extras: frozenset[str], progress: ProgressLine) -> None:
        from installer.packages import create_venv, install_packages

        state = self._read_state()
        extras |= frozenset(state.get("extras", ()))
        wanted = {"base": self._base(), "requirements": self._requirements_hash(), "extras": sorted(extras)}
        kept = state.get("state") == "ready" and state.get("base") == wanted["base"] and self.python.exists()
        if not kept:
            self._check_disk()
            self._clear(state, progress)
        self._write_state({**wanted, "state": "installing"})
        if not kept:
            create_venv(self, progress)
        install_packages(self, extras, progress)
        self._write_state({**wanted, "state": "ready"})

    def _check_disk(self) -> None:
        import shutil

        needed = NEEDED_GB_WITH_CUDA if self._nvidia else NEEDED_GB
        free = shutil.disk_usage(self.root).free / 1e9
        if free < needed:
            raise SetupError(
                "Not enough disk space",
                f"{self.folder} needs about {needed:.0f} GB, but only {free:.1f} GB are free.",
                "Free some space, or move this checkout to another disk.",
                exit_code=3,
            )

    def _clear(self, state: dict[str, Any], progress: ProgressLine) -> None:
        """Remove the old environment; one that this script did not make is moved aside instead."""
        import shutil

        doomed = self.root / f".venv-removed-{os.getpid()}-{time.time_ns():x}"
        try:
            if self.folder.exists() and any(self.folder.iterdir()):
                # Renaming first: on Windows it fails as a whole while a program of the environment runs.
                self._rename(doomed, progress)
                if state:
                    progress.say("removing the old .venv")
                    shutil.rmtree(doomed, ignore_errors=True)
                else:
                    progress.say(f"this script did not create the existing .venv; it is now {doomed.name}")
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise SetupError(
                "The environment cannot be created",
                f"{self.folder} cannot be replaced ({error}).",
                "Close programs that use it (a Rankdeck window or run), and check that the folder is writable.",
                exit_code=3,
            ) from error

    def _rename(self, target: Path, progress: ProgressLine) -> None:
        """Rename it once programs that a killed setup left behind have ended: on Windows they hold the folder."""
        deadline = time.monotonic() + ORPHANS_LIMIT_S
        while True:
            try:
                self.folder.rename(target)
            except PermissionError:
                if time.monotonic() > deadline:
                    raise
                progress.show("waiting for programs that use .venv")
                time.sleep(0.2)
            else:
                return

    @contextlib.contextmanager
    def _lock(self, progress: ProgressLine) -> Iterator[None]:
        """One process at a time. The operating system releases the lock when its last holder exits.

        On POSIX venv and pip hold it too (`inherited`): where this process is killed and they live on, the next
        one waits for them. On Windows they hold files of the environment instead, which `_rename` waits for.
        """
        path = self.root / ".venv.lock"
        deadline = time.monotonic() + LOCK_LIMIT_S
        try:
            stream = path.open("a+b")
        except OSError as error:
            raise SetupError(
                "The environment cannot be created",
                f"{self.root} cannot be written ({error}).",
                "Copy the checkout to a folder that you can write to.",
                exit_code=3,
            ) from error
        with stream:
            while not _try_lock(stream.fileno()):
                if time.monotonic() > deadline:
                    raise SetupError(
                        "Another setup is still running",
                        f"Another process has been setting up this checkout for {LOCK_LIMIT_S / 60:.0f} minutes.",
                        "Wait for it or end it, then try again.",
                    )
                progress.show("another process is setting up this checkout; waiting for it")
                time.sleep(0.5)
            self.inherited = (stream.fileno(),) if sys.platform != "win32" else ()
            try:
                yield
            finally:
                self.inherited = ()


def _check_machine() -> None:
    """Refuse variables that would fail later, and less clearly; raises `SetupError`."""
    for fault in variable_faults(os.environ):
        raise SetupError("This machine is not ready", fault.cause, fault.next_step, exit_code=3)
    wheels = wheels_folder(os.environ)
    if wheels is not None and not wheels.is_dir():
        cause = f"The variable {ENV_WHEELS} names a folder of wheels that is not there: {wheels}"
        raise SetupError("This machine is not ready", cause, f"Correct or remove {ENV_WHEELS}.", exit_code=3)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
