"""Installed program: whether this one was put here by its setup, how it is updated, and the way back.

Its folder holds `Rankdeck.exe` and a folder for each version below `versions` (docs/decisions/0040).
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.paths import data_folder
from core.processes.detached import spawn_detached

KEY: Final = r"Software\Microsoft\Windows\CurrentVersion\Uninstall\Rankdeck"
OPENED: Final = "OpenedFolder"
"""The value by which a window tells the setup that it has opened."""
UPDATE_OPTION: Final = "/UPDATE"
"""Has a setup ask nothing, wait until the window is closed, and open the new one."""
_PROGRAM: Final = "Rankdeck.exe"
_BACK: Final = "back.py"
_VERSION: Final = re.compile(r"(\d+(?:\.\d+)+[^-]*)-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Installation:
    """The program that runs this code.

    Attributes:
        program: Its folder.
        version_folder: The name of the folder of the version that runs.
        previous: The name of the folder of the version before; empty if there is none.
    """

    program: Path
    version_folder: str
    previous: str = ""

    @property
    def previous_version(self) -> str:
        """ "0.1.0"; empty if there is none."""
        found = _VERSION.fullmatch(self.previous)
        return found[1] if found else ""


def find_installation(prefix: Path | None = None) -> Installation | None:
    """The installation that this process runs in; None in a checkout, or where pip has installed it.

    Args:
        prefix: The folder of Python; None: of this one.
    """
    python = Path(sys.prefix) if prefix is None else prefix
    versions = python.parent.parent
    program = versions.parent
    if python.name != "python" or versions.name != "versions" or not (program / _PROGRAM).is_file():
        return None
    return Installation(program, python.parent.name, _previous(versions, python.parent.name))


def tell_opened(installation: Installation) -> None:
    """Tells a setup that waits for it that this version's window has opened."""
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, KEY) as key:
                winreg.SetValueEx(key, OPENED, 0, winreg.REG_SZ, installation.version_folder)
        except OSError:
            return  # an account that may not: the setup then judges by the window's process


def start_setup(setup: Path) -> None:
    """Starts a setup that outlives this window; close the window next.

    Raises:
        RankdeckError: Windows does not start it.
    """
    spawn_detached([str(setup), UPDATE_OPTION], setup.parent, os.environ, data_folder() / "logs" / "update.log")


def go_back(installation: Installation) -> None:
    """Starts the program that puts the version before in place, and opens it, once this window is closed.

    Raises:
        RankdeckError: It cannot be started.
    """
    before = installation.program / "versions" / installation.previous
    if not installation.previous or not (before / "python" / "pythonw.exe").is_file():
        raise RankdeckError(
            "The version before is not on this PC any more.",
            "Download its setup and start that.",
            title="There is no way back",
        )
    own = installation.program / "versions" / installation.version_folder
    # The Python of the version before: it is known to start.
    command = [str(before / "python" / "pythonw.exe"), "-I", str(own / _BACK), "--open"]
    spawn_detached(command, installation.program, os.environ, data_folder() / "logs" / "update.log")


def _previous(versions: Path, own: str) -> str:
    """As the setup has noted it; where it has not, the newest other version that is whole."""
    noted = _noted("PreviousFolder")
    if noted and noted != own and (versions / noted / "launchers").is_dir():
        return noted
    others = [path for path in versions.iterdir() if path.name != own and (path / "launchers").is_dir()]
    return max(others, key=lambda path: path.stat().st_mtime).name if others else ""


def _noted(name: str) -> str:
    if sys.platform != "win32":
        return ""
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_CURRENT_USER, KEY) as key:
            return str(winreg.QueryValueEx(key, name)[0])
    except OSError:
        return ""
