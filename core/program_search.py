"""`find_program`: a program of the system, never one that lies in the current folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

_WINDOWS: Final = os.name == "nt"  # not sys.platform, so that the checker reads both branches on either system


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
