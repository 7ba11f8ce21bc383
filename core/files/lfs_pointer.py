"""Git LFS pointers: the short note that Git keeps in a file's place until Git LFS has fetched the file.

https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.errors import ConfigError, DatasetError
from core.held_files import open_binary

_BEGINNING: Final = b"version https://git-lfs.github.com/spec/"


def check_lfs_pointer(path: Path | str, beginning: bytes | None = None, *, field: str = "") -> None:
    """Refuse a pointer in place of a person's file, whatever its name.

    Args:
        path: The file.
        beginning: Its first bytes, if at hand.
        field: The setting that names it; empty: it is a dataset.

    Raises:
        ConfigError, DatasetError: It is a pointer.
        OSError: It cannot be read.
    """
    if beginning is None:
        with open_binary(Path(path)) as file:
            beginning = file.read(len(_BEGINNING))
    if not beginning.startswith(_BEGINNING):
        return
    cause = f"{path} is a Git LFS pointer: a note in place of the file, which was not downloaded."
    step, title = "Run git lfs pull in the folder of its repository.", "The file is a Git LFS pointer"
    raise ConfigError(field, cause, step, title=title) if field else DatasetError(cause, step, title=title)
