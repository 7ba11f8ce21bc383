"""Log watch: notes when the ranks' logs grow, since printed lines carry no time of their own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.host.states import AttemptPhase
from core.host.watches.watch import Watch
from core.run_folder.log_times import note_size

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0


class LogWatch(Watch):
    """Looks at the logs of one attempt once a second, before its ranks start, and after they have ended."""

    def __init__(self, logs: Sequence[Path]) -> None:
        self._logs = logs
        self._sizes: dict[Path, int] = {}
        self._due = 0.0
        self._looking: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        await self._look_now()

    async def close(self) -> None:
        await self._look_now()

    async def _look_now(self) -> None:
        if self._looking is not None:
            await asyncio.wait([self._looking])
        await asyncio.get_running_loop().run_in_executor(None, self._note)

    def tick(self, now: float, _phase: AttemptPhase) -> None:
        if now >= self._due and (self._looking is None or self._looking.done()):
            self._due = now + LOOK_EVERY_S
            # Not on the disk thread: a drive in trouble would hold back the run's own files.
            self._looking = asyncio.get_running_loop().run_in_executor(None, self._note)

    def _note(self) -> None:
        for path in self._logs:
            try:
                size, changed = _size_and_change(path)
                if size != self._sizes.get(path):
                    # What an earlier host did not live to note was printed when the file was last changed.
                    note_size(path, size, time.time() if path in self._sizes else changed)
                    self._sizes[path] = size
            except (OSError, RankdeckError) as error:  # no reason to end a run
                log.warning("the time of %s could not be kept: %s", path.name, error)


def _size_and_change(path: Path) -> tuple[int, float]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, time.time()
    return status.st_size, status.st_mtime
