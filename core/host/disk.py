"""The run folder's disk: notices that the folder is gone, and reserves space for an orderly end."""

from __future__ import annotations

import asyncio
import logging
import secrets
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0
GONE_LIMIT_S: Final = 5.0
"""A network drive may be away for a moment; training continues meanwhile and nothing is lost."""
RESERVED_BYTES: Final = 64 << 10
NAME: Final = ".reserve.rankdeck-tmp"
"""Named as unfinished replacements are, so that the next host clears away what a killed one left."""


async def until_gone(path: Path, limit_s: float = GONE_LIMIT_S) -> None:
    """Returns when `path` has not been there for `limit_s`, looking once a second on a thread of its own.

    The run's folder itself is a bad witness: while it is being emptied a host writes into it, and so it stays.

    A look that hangs, as at a network drive in trouble, says nothing and is waited for.
    """
    loop = asyncio.get_running_loop()
    missing_since: float | None = None
    while missing_since is None or loop.time() - missing_since < limit_s:
        await asyncio.sleep(min(LOOK_EVERY_S, limit_s))
        there = await loop.run_in_executor(None, _is_there, path)
        missing_since = None if there else missing_since or loop.time()


def folder_gone(folder: Path) -> dict[str, str]:
    """Title, cause and next step for a run that ended because of it."""
    return {
        "title": "The run's folder is gone",
        "cause": f"{folder} was removed or moved while the run was training, so nothing more could be saved.",
        "next_step": "If it was moved, resume it from where it is now: rankdeck resume FOLDER.",
    }


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no permission just now, for example, which proves nothing
        return True


class ReservedSpace:
    """64 KiB that a run keeps, so that its last state can be written on a full disk, until they are released."""

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
