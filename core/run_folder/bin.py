"""Bin for removed runs, from which they can be put back until it is emptied.

It is the folder `.bin` next to the runs, so that removing and putting back is one rename on one drive.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from core.errors import PreflightError, RunBusyError, RunNotFoundError, StateFileError
from core.files.atomic import explain
from core.run_folder.store import RunEntry, RunStore, list_runs

BIN: Final = ".bin"


def bin_of(runs_dir: Path) -> Path:
    """Where the removed runs of a folder are."""
    return runs_dir / BIN


def require_ended(store: RunStore) -> None:
    """Raises `RunBusyError` if a host is at work on a run."""
    if store.is_locked() or _is_live(store):
        raise RunBusyError(
            f"{store.dir.name} is running.",
            "Stop it first.",
            option=f"rankdeck stop {store.dir.name}",
            title="A running run cannot be removed",
        )


def remove_run(store: RunStore) -> Path:
    """Moves a run to the bin.

    Returns:
        Where it is now; `restore_run` takes it.

    Raises:
        RunBusyError: A host is at work on it.
        PreflightError: The system refuses, for example because a file of it is open.
    """
    require_ended(store)
    target = _free(bin_of(store.dir.parent) / store.dir.name)
    _move(store.dir, target, f"{store.dir} could not be moved to the bin")
    return target


def restore_run(binned: Path) -> Path:
    """Puts a run back from where `remove_run` put it.

    Returns:
        Its folder; under a name with a number if its own has been taken meanwhile.

    Raises:
        RunNotFoundError: It is not in the bin any more.
        PreflightError: The system refuses.
    """
    if binned.parent.name != BIN or not binned.is_dir():
        raise RunNotFoundError(f"{binned} is not in the bin.", "List what is there.", option="rankdeck runs --bin")
    target = _free(binned.parent.parent / binned.name)
    _move(binned, target, f"{binned} could not be put back")
    return target


def binned_runs(runs_dir: Path) -> list[RunEntry]:
    """The removed runs of a folder, newest first; raises as `list_runs`."""
    return list_runs(bin_of(runs_dir))


def empty_bin(runs_dir: Path) -> int:
    """Deletes the removed runs of a folder for good.

    Returns:
        How many there were.

    Raises:
        PreflightError: Some could not be deleted; says the first.
    """
    entries = binned_runs(runs_dir)
    for entry in entries:
        try:
            shutil.rmtree(entry.path, onerror=_make_writable)
        except OSError as error:
            raise explain(error, f"{entry.path} could not be deleted") from error
    return len(entries)


def folder_bytes(folder: Path) -> int:
    """What the files below a folder take, in bytes; links count as nothing, and so does what cannot be read."""
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


def _move(source: Path, target: Path, what: str) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
    except OSError as error:
        if isinstance(error, PermissionError) and os.name == "nt":
            raise PreflightError(
                f"{what}: a file of it is open in another program.",
                "Close the programs that show it, and try again.",
                title="The run is in use",
            ) from error
        raise explain(error, what) from error


def _free(wished: Path) -> Path:
    """This path, or the first one with a number behind it that does not exist."""
    path, number = wished, 1
    while path.exists():
        number += 1
        path = wished.with_name(f"{wished.name}-{number}")
    return path


def _make_writable(again: Callable[[str], Any], path: str, _error: Any) -> None:
    """Windows does not delete a file that is marked read-only."""
    Path(path).chmod(stat.S_IWRITE)
    again(path)
