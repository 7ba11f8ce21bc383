"""Removal of runs: to the recycle bin of the system, or for good."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from core.errors import PreflightError, RunBusyError, StateFileError
from core.files.atomic import explained
from core.files.links import is_link, remove_link
from core.held_files import is_sharing_violation, rename, retried
from core.program_search import run_hidden
from core.run_folder.store import RunStore

_LIMIT_S: Final = 600.0
# Qt's way is the only one that never deletes: send2trash without pywin32, and Windows' SHFileOperation below it, delete
# for good, without a word, what the bin has no room for and what lies on a network drive.
_MOVE: Final = """\
import sys
from PySide6.QtCore import QDir, QFile, QStandardPaths
QDir().mkpath(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation))
sys.exit(0 if QFile(sys.argv[1]).moveToTrash() else 3)
"""


class NoRecycleBinError(PreflightError):
    """The recycle bin does not take a run: a network drive, a folder larger than the bin, no bin at all."""

    title = "The recycle bin does not take the run"


def require_ended(store: RunStore) -> None:
    if store.is_locked() or _is_live(store):
        raise RunBusyError(
            f"{store.dir.name} is running.",
            "Stop it first.",
            option=f"rankdeck stop {store.dir.name}",
            title="A running run cannot be removed",
        )


def recycle_run(store: RunStore) -> None:
    """Move a run to the recycle bin; of a link the link alone, never its target.

    Raises:
        RunBusyError: A host is at work on it.
        NoRecycleBinError: The bin does not take it.
        PreflightError: A file of it is open in another program.
    """
    require_ended(store)
    if is_link(store.dir):
        with explained(f"{store.dir} could not be removed"):
            remove_link(store.dir)
        return
    command = [sys.executable, "-I", "-c", _MOVE, str(store.dir.absolute())]
    try:
        answer = run_hidden(command, _LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(store.dir, str(error)) from error
    if answer.returncode or store.dir.exists():
        _require_free(store.dir)
        lines = answer.stderr.strip().splitlines()
        raise _refused(store.dir, lines[-1] if lines else "the system refused it")


def delete_run(store: RunStore) -> None:
    """Delete a run for good, of a link the link alone; raises `RunBusyError` and `PreflightError`."""
    require_ended(store)
    with explained(f"{store.dir} could not be deleted"):
        if is_link(store.dir):
            remove_link(store.dir)
        else:
            # Files that are marked read-only too, which Windows does not delete.
            retried(partial(shutil.rmtree, store.dir, onerror=_make_writable))


def folder_bytes(folder: Path) -> int:
    total, folders = 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        folders.append(Path(item.path))
                    elif item.is_file(follow_symlinks=False):
                        total += item.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def _is_live(store: RunStore) -> bool:
    try:
        return store.state().is_live
    except StateFileError:
        return False


def _require_free(folder: Path) -> None:
    """Refuse a folder of which another program holds a file: Windows' bin names no reason."""
    aside = folder.with_name(f"{folder.name}.removing")
    try:
        rename(folder, aside)
        rename(aside, folder)
    except OSError as error:
        if is_sharing_violation(error):
            raise PreflightError(
                f"A file of {folder} is open in another program.",
                "Close the programs that show it, and try again.",
                title="The run is in use",
            ) from error


def _refused(folder: Path, why: str) -> NoRecycleBinError:
    return NoRecycleBinError(
        f"{folder} stays where it is: {why}. Network drives have no bin, and a small one takes no large folder.",
        "Delete it for good instead.",
        option=f"rankdeck rm --permanently {folder}",
    )


def _make_writable(again: Callable[[str], Any], path: str, _error: Any) -> None:
    Path(path).chmod(stat.S_IWRITE)
    again(path)
