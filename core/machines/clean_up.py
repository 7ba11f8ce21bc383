"""Clean-up: removes from this machine what other computers sent, where no run needs it any more.

A folder of `trees` is needed while a run's settings name it, in the folders of runs or in their bins; a file of `files`
while such a folder has it, so that it need not be sent again. What arrived in the last hour stays: its run may
yet start.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import RunBusyError, StateFileError
from core.files.atomic import explained, read_bytes, read_json, sha256_file, write_atomic
from core.held_files import remove_file, remove_folder, rename
from core.machines.agent import FileStore, others_connected
from core.paths import data_folder
from core.run_folder.bin import bin_of
from core.run_folder.store import list_runs

YOUNG_S: Final = 3600.0
_FOLDERS_FILE: Final = "runs-folders.json"
_REMOVING: Final = ".removing-"
_LEAVES_S: Final = 3.0
"""A connection that was closed on the other side needs a moment to end here."""
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Unneeded:
    """What can be removed.

    Attributes:
        trees: Folders.
        files: Files.
        freed_bytes: What the disk gets back.
        kept_bytes: What stays of what was sent.
    """

    trees: tuple[Path, ...]
    files: tuple[Path, ...]
    freed_bytes: int
    kept_bytes: int


def note_runs_folder(root: Path, runs_dir: Path) -> None:
    """Remembers a folder of runs that this machine was asked to use, whose runs may need what was sent."""
    known = _noted(root)
    if runs_dir not in known:
        paths = [str(path) for path in (*known, runs_dir)]
        write_atomic(root / _FOLDERS_FILE, json.dumps(paths, ensure_ascii=False) + "\n")


def find_unneeded(root: Path, runs_dir: Path) -> Unneeded:
    """What no run needs; changes nothing.

    Args:
        root: Rankdeck's folder for what other computers send.
        runs_dir: The folder of runs of this connection; earlier ones are remembered.

    Raises:
        RunBusyError: A run trains here, or another connection may be sending.
        PreflightError: A folder cannot be read, so that nothing is known of its runs.
        StateFileError: The list of folders is damaged.
    """
    names = b"\n".join(_settings_of_runs((*_noted(root), runs_dir, data_folder() / "runs")))
    deadline = time.monotonic() + _LEAVES_S
    while others_connected(root):
        if time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        raise RunBusyError(
            "Another connection is using what was sent to this machine.",
            "Try again when nothing is sent to it or set up on it.",
            title="The machine is in use",
        )
    store = FileStore(root)
    now = time.time()
    trees = [path for path in _listed(store.trees) if path.is_dir()]
    kept = [path for path in trees if _is_needed(path, names) or _is_young(path, now)]
    gone = [path for path in trees if path not in kept]
    held = _Contents.of(kept)
    files = [path for path in _listed(store.files) if not _is_young(path, now) and not held.has(path)]
    removed = [*files, *(path for tree in gone for path in _files_in(tree))]
    stays = {*_listed(store.files), *(path for tree in kept for path in _files_in(tree))} - set(files)
    return Unneeded(tuple(gone), tuple(files), _freed(removed), _used(stays))


def remove(unneeded: Unneeded) -> None:
    """Removes it, each folder whole or not at all.

    Raises:
        PreflightError: Something cannot be removed.
    """
    for tree in unneeded.trees:
        with explained(f"{tree} could not be removed"):
            going = tree if _REMOVING in tree.name else tree.with_name(f"{tree.name}{_REMOVING}{os.getpid()}")
            if going != tree:
                rename(tree, going)
            remove_folder(going)
    for path in unneeded.files:
        with explained(f"{path} could not be removed"):
            remove_file(path)


@dataclass(frozen=True, slots=True)
class _Contents:
    """What is in folders: inodes, and paths by size."""

    inodes: frozenset[tuple[int, int]]
    by_size: dict[int, list[Path]]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> _Contents:
        """Looks through the folders."""
        inodes, by_size = set(), dict[int, list[Path]]()
        for path in (path for folder in folders for path in _files_in(folder)):
            status = path.stat()
            inodes.add((status.st_dev, status.st_ino))
            by_size.setdefault(status.st_size, []).append(path)
        return cls(frozenset(inodes), by_size)

    def has(self, blob: Path) -> bool:
        """Whether a sent file, which is called by its hash, is among them: linked, or as a copy."""
        status = blob.stat()
        if (status.st_dev, status.st_ino) in self.inodes:
            return True
        return any(sha256_file(path) == blob.name for path in self.by_size.get(status.st_size, ()))


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
        for place in (runs_dir, bin_of(runs_dir)):
            for name in ("run.toml", "attempt.toml"):
                for path in place.glob(f"*/{name}"):
                    yield read_bytes(path)


def _is_needed(tree: Path, settings: bytes) -> bool:
    return tree.name.encode() in settings or tree in Path.cwd().parents


def _is_young(path: Path, now: float) -> bool:
    return now - path.stat().st_mtime < YOUNG_S


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(folder.iterdir())
    return []


def _files_in(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (path for name in names if (path := Path(place, name)).is_file() and not path.is_symlink())


def _freed(paths: Sequence[Path]) -> int:
    """What the disk gets back: of a linked file only where every link goes."""
    links: dict[tuple[int, int], int] = {}
    freed = 0
    for path in paths:
        status = path.stat()
        key = (status.st_dev, status.st_ino)
        links[key] = links.get(key, 0) + 1
        freed += status.st_size if links[key] == status.st_nlink else 0
    return freed


def _used(paths: set[Path]) -> int:
    found = {(status.st_dev, status.st_ino): status.st_size for path in paths for status in (path.stat(),)}
    return sum(found.values())
