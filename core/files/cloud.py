"""Cloud folders (OneDrive): recognises them, and files whose content is not on this machine.

OneDrive uploads each checkpoint as it is written and holds it meanwhile; when space is short it takes a file's content
away ("Files On-Demand"), and reading it then downloads it, or fails where OneDrive does not run.
https://learn.microsoft.com/windows/win32/fileio/file-attribute-constants
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PureWindowsPath
from typing import Final

# OneDrive puts its folders there; Desktop and Documents lie in one where their backup is on.
_VARIABLES: Final = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")
# FILE_ATTRIBUTE_OFFLINE, RECALL_ON_OPEN, RECALL_ON_DATA_ACCESS.
_NOT_HERE: Final = 0x1000 | 0x40000 | 0x400000
# ERROR_CLOUD_FILE_PROVIDER_NOT_RUNNING and its neighbours, ERROR_CLOUD_FILE_…, of WinError.h.
CLOUD_ERRORS: Final = frozenset((358, *range(362, 367), *range(374, 405)))


def cloud_folder(path: Path, environment: Mapping[str, str] = os.environ) -> str | None:
    """Find the OneDrive folder that holds a path; None where none does."""
    place = PureWindowsPath(str(path.absolute() if os.name == "nt" else path))
    folders = (environment.get(name, "").strip() for name in _VARIABLES)
    return next((folder for folder in folders if folder and place.is_relative_to(PureWindowsPath(folder))), None)


def count_placeholders(paths: Iterable[Path]) -> int:
    """Count files of which only the name is on this machine; never one that cannot be seen."""
    return sum(map(_is_placeholder, paths))


def _is_placeholder(path: Path) -> bool:
    try:
        return bool(getattr(path.stat(), "st_file_attributes", 0) & _NOT_HERE)
    except (OSError, ValueError):
        return False
