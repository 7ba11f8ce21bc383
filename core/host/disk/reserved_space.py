"""Reserved disk space: 64 KiB that a run keeps, so that its last state can be written on a full disk."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

RESERVED_BYTES: Final = 64 << 10
NAME: Final = ".reserve.rankdeck-tmp"
"""Named as unfinished replacements are, so that the next host clears away what a killed one left."""


class ReservedSpace:
    """Holds the space until it is released."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / NAME
        try:
            self._path.write_bytes(secrets.token_bytes(RESERVED_BYTES))  # nothing that a file system could leave out
        except OSError as error:
            log.warning("no space could be kept for the last state: %s", error)

    def release(self) -> None:
        """Gives the space free; a second call does nothing."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the space kept for the last state could not be freed: %s", error)
