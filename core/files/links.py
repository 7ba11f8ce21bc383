"""Links in a run's folder: refused, since a run writes only into its own folder.

A folder that was received, or unpacked from an archive, may hold links to anything that its new owner can write.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from core.errors import UsageError

# IO_REPARSE_TAG_MOUNT_POINT: Windows' links to folders, which need no right to make.
_JUNCTION: Final = 0xA0000003
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)


class LinkError(UsageError):
    """A link stands where a run is to write."""

    title = "A link is in the way"


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link or a Windows junction, with a `LinkError`; a missing file passes."""
    if not is_link(path):
        return
    try:
        target = f" to {os.readlink(path)}"  # noqa: PTH115, pathlib's puts it into a Path, which changes it
    except OSError:
        target = ""
    raise LinkError(
        f"{path} is a link{target}, and a run writes only into its own folder.",
        "Replace the link with a file or folder of its own, or remove it.",
    )


def refuse_links_below(folder: Path, depth: int = 3) -> None:
    """As `refuse_link`, for a folder and everything in it, down to `depth` levels."""
    refuse_link(folder)
    for path in _children(folder):
        refuse_link(path)
        if depth > 1:
            refuse_links_below(path, depth - 1)


def open_unlinked(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file for writing without following a link; raises `LinkError`, or as `os.open`."""
    refuse_link(path)
    try:
        return os.open(path, flags | _NO_FOLLOW, mode)
    except OSError:
        refuse_link(path)  # made since
        raise


def append_unlinked(path: Path) -> BinaryIO:
    """Open a file to append, made if it is missing, without a buffer; raises as `open_unlinked`."""
    return os.fdopen(open_unlinked(path, _APPEND), "ab", buffering=0)


def remove_link(path: Path) -> None:
    """Remove a link itself; raises OSError. Windows removes one to a folder as a folder."""
    try:
        path.unlink()
    except PermissionError:
        if os.name != "nt":
            raise
        path.rmdir()


def is_link(path: Path) -> bool:
    """Whether it is a symbolic link or a Windows junction; False where that cannot be seen."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION


def _children(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(Path(entry.path) for entry in entries)
    except OSError:  # a file, missing, or one that may not be looked into, and so not written either
        return
