"""Own code: this Rankdeck's files that another machine needs, as a tree."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core.machines.tree import Tree, tree_of
from core.paths import PACKAGE_FOLDER

_FOLDERS: Final = ("core", "workers", "resources")
_SUFFIXES: Final = (".py", ".toml", ".json", ".txt")
_FILES: Final = ("pyproject.toml", "constraints.txt")
"""What a Rankdeck in its own folder has beside them; it says there which packages are needed."""


@functools.cache
def own_code() -> Tree:
    """Everything but the window; the same for as long as this process lives.

    Raises:
        PreflightError: A file cannot be read.
    """
    return tree_of("rankdeck", PACKAGE_FOLDER, _paths(PACKAGE_FOLDER))


def _paths(root: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        for path in (root / name).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix in _SUFFIXES:
                yield path
    yield from (root / name for name in _FILES if (root / name).is_file())
