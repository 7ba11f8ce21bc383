"""Old tokens: those unused for a long time are removed, so that the cache does not fill the disk over the years."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Final

UNUSED_DAYS: Final = 90
_REMOVED: Final = ".removed"


def mark_used(index: Path) -> None:
    """Tokens are used now: their index is as young as their last use."""
    with contextlib.suppress(OSError):  # a cache that is read only is never cleared either
        os.utime(index)


def remove_unused(cache: Path, index: str, days: float = UNUSED_DAYS) -> None:
    """Removes folders whose tokens were neither used nor made within some days.

    Under Windows a folder that a process has mapped cannot be renamed, and stays; elsewhere the process keeps what it
    has mapped.

    Args:
        cache: The cache's folder.
        index: The name of the file that marks finished tokens, and their last use.
        days: After how long they are removed.
    """
    oldest = time.time() - days * 86_400  # files' times are wall times
    for folder in [entry for entry in cache.iterdir() if entry.is_dir()]:
        with contextlib.suppress(OSError):
            if folder.suffix != _REMOVED:
                used = folder / index
                if (used if used.exists() else folder).stat().st_mtime >= oldest:
                    continue
                folder = folder.rename(folder.with_suffix(_REMOVED))
            shutil.rmtree(folder)
