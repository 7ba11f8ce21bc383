"""Clean-up: removes from this machine what other computers sent, where no run needs it any more.

A folder of `trees` is needed while a run's settings name it, in the folders of runs or in their bins; a file of `files`
while such a folder has it, so that it need not be sent again. What arrived in the last hour stays: its run may yet
start. One that is sent at the same moment may miss a file that was there before; it is told so, and sent again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RunBusyError, StateFileError
from core.files.atomic import explained, read_bytes, read_json, sha256_file, write_atomic
from core.held_files import remove_file, remove_folder, rename
from core.machines.agent import FileStore
from core.machines.answers import CleanUp
from core.paths import data_folder
from core.run_folder.removal import OLD_BIN
from core.run_folder.store import list_runs

YOUNG_S: Final = 3600.0
_FOLDERS_FILE: Final = "runs-folders.json"
_REMOVING: Final = ".removing-"
_MAX_BYTES: Final = 1 << 20


def note_runs_folder(root: Path, runs_dir: Path) -> None:
    """Remembers a folder of runs that this machine was asked to use, whose runs may need what was sent."""
    known = _noted(root)
    if runs_dir not in known:
        paths = [str(path) for path in (*known, runs_dir)]
        write_atomic(root / _FOLDERS_FILE, json.dumps(paths, ensure_ascii=False) + "\n")


def clean_up(root: Path, runs_dir: Path, *, remove: bool) -> CleanUp:
    """Removes what no run needs, each folder whole or not at all; or only says what that is.

    Args:
        root: Rankdeck's folder for what other computers send.
        runs_dir: The folder of runs of this connection; earlier ones are remembered.
        remove: False changes nothing.

    Raises:
        RunBusyError: A run trains here.
        PreflightError: A folder cannot be read, so that nothing is known of its runs; or something not be removed.
        StateFileError: The list of folders is damaged.
    """
    settings = b"\n".join(_settings_of_runs((*_noted(root), runs_dir, data_folder() / "runs")))
    store = FileStore(root)
    trees = [path for path in _listed(store.trees) if path.is_dir()]
    kept = [path for path in trees if _is_needed(path, settings) or _is_young(path)]
    gone = [path for path in trees if path not in kept]
    sent = {_inode(path) for path in _listed(store.files)}
    held = {key if (key := _inode(path)) in sent else sha256_file(path) for path in _files_in(kept)}
    files = [
        path for path in _listed(store.files) if not (_is_young(path) or path.name in held or _inode(path) in held)
    ]
    sizes = {_inode(path): path.stat().st_size for path in (*files, *_files_in(gone)) if _inode(path) not in held}
    if remove:
        _remove(gone, files)
    return CleanUp(len(gone), len(files), sum(sizes.values()))


def _remove(trees: Sequence[Path], files: Sequence[Path]) -> None:
    for tree in trees:
        with explained(f"{tree} could not be removed"):
            going = tree if _REMOVING in tree.name else tree.with_name(f"{tree.name}{_REMOVING}{os.getpid()}")
            if going != tree:
                rename(tree, going)
            remove_folder(going)
    for path in files:
        with explained(f"{path} could not be removed"):
            remove_file(path)


def _noted(root: Path) -> list[Path]:
    path = root / _FOLDERS_FILE
    if not path.exists():
        return []
    value: Any = read_json(path, limit_bytes=_MAX_BYTES)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise StateFileError(f"{path} is damaged.", "Delete it, if every run is in Rankdeck's own folder of runs.")
    return [Path(item) for item in value]


def _settings_of_runs(folders: Sequence[Path]) -> Iterator[bytes]:
    """The settings of every run, as they are on disk."""
    for runs_dir in dict.fromkeys(folders):
        for entry in list_runs(runs_dir):
            if entry.state is not None and entry.state.is_live:
                raise RunBusyError(
                    f"{entry.path.name} is {entry.state.state}.",
                    "Clean up when it has ended.",
                    title="A run trains there",
                )
        for place in (runs_dir, runs_dir / OLD_BIN):
            for name in ("run.toml", "attempt.toml"):
                for path in place.glob(f"*/{name}"):
                    yield read_bytes(path)


def _is_needed(tree: Path, settings: bytes) -> bool:
    return tree.name.encode() in settings or tree in Path.cwd().parents


def _is_young(path: Path) -> bool:
    return time.time() - path.stat().st_mtime < YOUNG_S


def _inode(path: Path) -> tuple[int, int]:
    """What links to one file have in common."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(folder.iterdir())
    return []


def _files_in(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for place, _, names in os.walk(folder):
            yield from (path for name in names if (path := Path(place, name)).is_file() and not path.is_symlink())
