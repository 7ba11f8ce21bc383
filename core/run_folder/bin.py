"""Bin for removed runs, from which they can be put back until it is emptied.

It is the folder `.bin` next to the runs, so that removing and putting back is one rename on one drive.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from core.errors import PreflightError, RunBusyError, RunNotFoundError, StateFileError, UsageError
from core.files.atomic import explain, explained
from core.files.links import is_link, remove_link
from core.held_files import rename, retried
from core.run_folder.record import RunRecord, notes_of
from core.run_folder.store import RunEntry, RunStore, read_entry

BIN: Final = ".bin"
DAMAGED: Final = "Parts of it were deleted."
LINK: Final = "It is a link; what it led to is not here."
SHOW: Final = "rankdeck bin"
"""The command that lists the bin."""


@dataclass(frozen=True, slots=True)
class BinnedRun:
    """One removed run.

    Attributes:
        record: Its state and its notes, without settings.
        removed: When it was removed, in Unix seconds.
    """

    record: RunRecord
    removed: float

    @property
    def path(self) -> Path:
        """Its folder in the bin."""
        return self.record.path

    @property
    def label(self) -> str:
        """What a list calls it."""
        return self.record.label


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
    """Moves a run to the bin; of a link the link alone, never what it leads to.

    Returns:
        Where it is now; `restore_run` takes it.

    Raises:
        RunBusyError: A host is at work on it.
        PreflightError: The system refuses, for example because a file of it is open.
    """
    require_ended(store)
    target = _free(bin_of(store.dir.parent) / store.dir.name)
    _move(store.dir, target, f"{store.dir} could not be moved to the bin")
    with contextlib.suppress(OSError, NotImplementedError):  # Windows cannot set the time of a link
        os.utime(target, follow_symlinks=not is_link(target))  # it says when it was removed: nothing writes there now
    return target


def restore_run(binned: Path) -> Path:
    """Puts a run back from where `remove_run` put it.

    Returns:
        Its folder; under a name with a number if its own has been taken meanwhile.

    Raises:
        RunNotFoundError: It is not in the bin any more.
        PreflightError: The system refuses.
    """
    _require_binned(binned)
    target = _free(binned.parent.parent / binned.name)
    _move(binned, target, f"{binned} could not be put back")
    return target


def list_bin(runs_dir: Path) -> list[BinnedRun]:
    """The removed runs of a folder, the one removed last first. What a failed deletion left is among them.

    Raises:
        PreflightError: The bin is there and cannot be read.
    """
    found: list[BinnedRun] = []
    with (
        explained(f"{bin_of(runs_dir)} could not be read"),
        contextlib.suppress(FileNotFoundError),
        os.scandir(bin_of(runs_dir)) as items,
    ):
        for item in items:
            path, removed = Path(item.path), 0.0
            with contextlib.suppress(OSError):
                removed = item.stat(follow_symlinks=False).st_mtime
            if is_link(path) or _may_be_folder(item):
                entry = read_entry(path) or RunEntry(path, None, LINK if is_link(path) else DAMAGED)
                found.append(BinnedRun(RunRecord(entry, notes_of(path)), removed))
    return sorted(found, key=lambda run: (run.removed, run.path.name), reverse=True)


def find_binned(runs_dir: Path, text: str) -> Path:
    """The removed run that `text` means: its id, its name, or the unique start of its id.

    Raises:
        RunNotFoundError: None does.
        UsageError: Several do.
    """
    runs = list_bin(runs_dir)
    found = [run.path for run in runs if run.path.name == text]
    found = found or [run.path for run in runs if run.label == text]
    found = found or [run.path for run in runs if text and run.path.name.startswith(text)]
    if not found:
        raise RunNotFoundError(
            f"No run in the bin of {runs_dir} is called {text!r:.100}.", "List what is there.", option=SHOW
        )
    if len(found) > 1:
        raise UsageError(f"{text!r:.100} means {len(found)} runs in the bin.", "Give more of its id.")
    return found[0]


def delete_binned(binned: Iterable[Path]) -> int:
    """Deletes removed runs for good.

    Returns:
        How many there were.

    Raises:
        RunNotFoundError: One is not in the bin any more.
        PreflightError: One could not be deleted.
    """
    count = 0
    for path in binned:
        _require_binned(path)
        with explained(f"{path} could not be deleted"):
            if is_link(path):
                remove_link(path)
            else:
                retried(partial(shutil.rmtree, path, onerror=_make_writable))
        count += 1
    return count


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


def _may_be_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir(follow_symlinks=False)
    except OSError:
        return True


def _is_live(store: RunStore) -> bool:
    try:
        return store.state().is_live
    except StateFileError:
        return False


def _require_binned(path: Path) -> None:
    if path.parent.name != BIN or not (is_link(path) or path.is_dir()):
        raise RunNotFoundError(f"{path} is not in the bin.", "List what is there.", option=SHOW)


def _move(source: Path, target: Path, what: str) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
        rename(source, target)
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
    while os.path.lexists(path):
        number += 1
        path = wished.with_name(f"{wished.name}-{number}")
    return path


def _make_writable(again: Callable[[str], Any], path: str, _error: Any) -> None:
    """Windows does not delete a file that is marked read-only."""
    Path(path).chmod(stat.S_IWRITE)
    again(path)
