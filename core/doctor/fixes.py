"""Fixes of findings that need no window of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.client import end_leftovers, find_leftovers
from core.doctor.finding import Fix
from core.errors import RankdeckError
from core.files.atomic import explained
from core.run_folder.store import RunStore, list_runs

# Windows' own pages and applets: https://learn.microsoft.com/windows/apps/develop/launch/launch-settings-app
_PAGES: Final[Mapping[Fix, str]] = {
    "open_page_file": "SystemPropertiesPerformance.exe",
    "open_firewall": "firewall.cpl",
    "open_storage": "ms-settings:storagesense",
}


class FixError(RankdeckError):
    title = "The problem could not be fixed"


def create_folder(folder: Path) -> str:
    """Make the folder of runs; return a sentence.

    Raises:
        PreflightError: No permission, a drive that is missing, a file in its place.
    """
    with explained(f"{folder} could not be made"):
        folder.mkdir(parents=True, exist_ok=True)
    return f"{folder} was made."


def end_all_leftovers(runs_dir: Path) -> str:
    """End processes that killed runs have left behind; return a sentence.

    Raises:
        FixError: Some did not end.
        RankdeckError: A run's folder cannot be locked.
    """
    ended: list[int] = []
    for folder in find_leftovers([RunStore(entry.path) for entry in list_runs(runs_dir)]):
        gone, left = end_leftovers(RunStore(folder))
        ended += gone
        if left:
            pids = ", ".join(map(str, left))
            raise FixError(f"Processes of {folder.name} did not end (pid {pids}).", "End them, or restart the machine.")
    return f"{len(ended)} process{'' if len(ended) == 1 else 'es'} ended."


def open_settings(fix: Fix) -> str:
    """Open a page of Windows' settings; return the next step.

    Raises:
        FixError: Windows did not open it.
    """
    page = _PAGES[fix]
    try:
        _open(page)
    except OSError as error:
        raise FixError(f"Windows did not open {page} ({error.strerror or error}).", "Open its settings.") from error
    return "Check again after you have changed the setting."


if sys.platform == "win32":

    def _open(page: str) -> None:
        import os

        os.startfile(page)

else:

    def _open(page: str) -> None:
        raise OSError(f"{page} is a page of Windows")
