"""Drives of this computer that folders can be kept on, and how much is free on each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

# Smaller ones are boot partitions, sticks and the like.
SMALLEST: Final = 8 << 30
_WINDOWS: Final = os.name == "nt"
_OWN_FILES: Final = ("/boot", "/snap", "/proc", "/sys", "/dev", "/run", "/var/lib", "/etc")


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive.

    Attributes:
        root: "D:\\", or where it is mounted.
        free: Bytes.
        total: Bytes.
    """

    root: Path
    free: int
    total: int


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


def list_drives() -> list[Drive]:
    """Fixed drives that can be written to, by name."""
    return drives_among(
        (part.mountpoint, part.opts) for part in psutil.disk_partitions(all=False) if part.fstype and part.device
    )


def drives_among(places: Iterable[tuple[str, str]]) -> list[Drive]:
    """Those of the places that can keep folders.

    Args:
        places: Where drives are mounted, and the options of each: "rw,fixed".
    """
    found: dict[tuple[int, int] | str, Drive] = {}
    for name, options in places:
        flags = options.split(",")
        is_system = not _WINDOWS and name.startswith(_OWN_FILES)
        if "ro" in flags or "cdrom" in flags or "removable" in flags or is_system or not Path(name).is_dir():
            continue
        try:
            usage = shutil.disk_usage(name)
        except OSError:  # a card reader without a card
            continue
        if usage.total >= SMALLEST and os.access(name, os.W_OK):
            # One drive may be mounted in several places; subvolumes of it have other numbers, but the same room. On
            # Windows it is two new drives of one make that have the same room.
            key = name if _WINDOWS else (usage.total, usage.free)
            found.setdefault(key, Drive(Path(name), usage.free, usage.total))
    return sorted(found.values(), key=lambda drive: str(drive.root))
