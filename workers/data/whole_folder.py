"""`whole_folder`: a folder that is put in place when all its files are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.files.atomic import explained, replace_with_retry
from core.held_files import remove_folder


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Gives an empty folder to be filled, which takes the place of `folder` at the end of the block.

    What a killed process or an exception leaves of it is never taken for `folder`.

    Args:
        folder: Is not there yet; the folder above it need not be either.

    Raises:
        PreflightError: The disk refuses, or Windows, because another program holds a file in it for too long.
    """
    part = folder.with_name(f"{folder.name}.part")
    with explained(f"{part} could not be made"):
        if part.exists():
            remove_folder(part)
        part.mkdir(parents=True)
    yield part
    with explained(f"{folder} could not be put in place"):
        replace_with_retry(part, folder)  # a virus scanner looks at files that were just written
