"""`Tree`: a folder to be sent to another machine, as relative paths, sizes and hashes."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from core.errors import PreflightError, UsageError
from core.files.atomic import explained, sha256_file
from core.formatting import byte_size
from core.held_files import open_binary
from core.paths import PACKAGE_FOLDER

MAX_CODE_BYTES: Final = 100 << 20
MAX_CODE_FILES: Final = 5_000
_SKIPPED: Final = frozenset(("__pycache__", "node_modules", "site-packages"))
_OWN_FOLDERS: Final = ("core", "workers", "resources")
_OWN_SUFFIXES: Final = (".py", ".toml", ".json", ".txt")
# A Rankdeck in its own folder reads its packages there.
_OWN_FILES: Final = ("pyproject.toml", "constraints.txt")
_BLOCK: Final = 1 << 18
_known: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a tree: its path in the tree, with slashes, and its place here."""

    path: str
    source: Path
    size: int
    sha256: str

    def read(self, offset: int = 0) -> Iterator[bytes]:
        """Read its bytes from `offset` up to `size`; raises `PreflightError` where it has become shorter."""
        left = self.size - offset
        with explained(f"{self.source} could not be read"), open_binary(self.source) as file:
            file.seek(offset)
            while left:
                block = file.read(min(left, _BLOCK))
                if not block:
                    raise PreflightError(
                        f"{self.source} has become shorter while it was sent.",
                        "Try again when nothing writes to it.",
                        title="A file changed",
                    )
                left -= len(block)
                yield block


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder, by the name that it gets there."""

    name: str
    files: tuple[TreeFile, ...]


def tree_of(name: str, root: Path, paths: Iterable[Path]) -> Tree:
    """Make a tree of files below a folder, each read once for its hash; raises `PreflightError`."""
    named = ((PurePosixPath(*path.relative_to(root).parts), path) for path in sorted(paths))
    return Tree(name, tuple(tree_file(str(name_there), path) for name_there, path in named))


def tree_file(path: str, source: Path) -> TreeFile:
    """Read a file of this computer once for its hash; raises `PreflightError`."""
    with explained(f"{source} could not be read"):
        stat = source.stat()
        key = (str(source), stat.st_size, stat.st_mtime_ns)
        if key not in _known:
            _known[key] = sha256_file(source)
    return TreeFile(path, source, stat.st_size, _known[key])


@functools.cache
def own_code() -> Tree:
    """Make a tree of this Rankdeck's files that another machine needs: all but the window."""
    root = PACKAGE_FOLDER
    found = [path for name in _OWN_FOLDERS for path in (root / name).rglob("*") if path.suffix in _OWN_SUFFIXES]
    found = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return tree_of("rankdeck", root, [*found, *(root / name for name in _OWN_FILES if (root / name).is_file())])


def code_tree(name: str, root: Path) -> Tree:
    """Make a tree of a folder of code, without hidden and cached files, environments and runs.

    Raises:
        UsageError: It is too large to be code.
        PreflightError: A file cannot be read.
    """
    paths = list(_code_files(root))
    size = sum(path.stat().st_size for path in paths)
    if len(paths) > MAX_CODE_FILES or size > MAX_CODE_BYTES:
        raise UsageError(
            f"{root} holds {len(paths):,} files of {byte_size(size)}, and all of it would be sent as code; the limit "
            f"is {MAX_CODE_FILES:,} files and {byte_size(MAX_CODE_BYTES)}.",
            "Keep the code in a folder without data and outputs.",
            title="The folder of the code is too large",
        )
    return tree_of(name, root, paths)


def _code_files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in sorted(folders) if not _is_skipped(Path(folder, name))]
        yield from (path for name in names if (path := Path(folder, name)).is_file() and not name.startswith("."))


def _is_skipped(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _SKIPPED or folder.is_symlink():
        return True
    return any((folder / mark).exists() for mark in ("pyvenv.cfg", "state.json"))
