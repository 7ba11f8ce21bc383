"""Free space on the drive of a folder, and the drive's name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def free_bytes(folder: Path) -> int | None:
    """Free bytes on the drive of a folder, which need not exist yet; None where that cannot be told."""
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None


def drive_of(folder: Path) -> str:
    """What a person calls the drive of a folder: "D:"; elsewhere where it is mounted."""
    return folder.drive or next(
        (str(place) for place in (folder, *folder.parents) if os.path.ismount(place)), str(folder)
    )
