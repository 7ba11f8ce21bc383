"""Programs that Rankdeck asks: never one that lies in the current folder, and without a console window."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
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


def run_hidden(
    command: Sequence[str], limit_s: float | None, *, env: Mapping[str, str] | None = None, shows_errors: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without input, and return what it printed as text.

    Args:
        command: An absolute path (`find_program`) and its arguments.
        limit_s: Seconds after which it is killed.
        env: Its whole environment; None for this process's own.
        shows_errors: Its standard error goes where this process's own does.

    Raises:
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It took longer.
    """
    # fmt: off
    return subprocess.run(
        command, env=env, timeout=limit_s, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
        stderr=None if shows_errors else subprocess.PIPE, encoding="utf-8", errors="replace", creationflags=NO_WINDOW,
    )
    # fmt: on
