"""Programs that Rankdeck starts: never one that lies in the current folder, and no console window."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

# For `creationflags`; 0 on other systems. The program gets a console of its own that is never shown, and so do the
# programs that it starts in turn. Not DETACHED_PROCESS, which leaves it without one: each console program below it
# would then open a visible window. Qt's QProcess does the same by itself in a program that has no console.
NO_WINDOW: Final[int] = getattr(subprocess, "CREATE_NO_WINDOW", 0)
# Not sys.platform, so that the checker reads both branches on either system.
_WINDOWS: Final = os.name == "nt"


def find_program(name: str) -> str | None:
    """Find a program in the folders of `PATH`.

    On Windows `shutil.which` and the start of a process by its name look into the current folder first. That may be a
    downloaded project, with an ``ssh.exe`` of its own.
    """
    if not _WINDOWS:
        return shutil.which(name)
    folders = (Path(entry.strip('"')) for entry in os.environ.get("PATH", "").split(os.pathsep))
    places = (folder / f"{name}.exe" for folder in folders if folder.is_absolute())
    return next((str(place) for place in places if place.is_file()), None)
