"""Disk watch: looks how much space a run's disk has left, and acts before there is none."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.host.commits.runner import CommitRunner
from core.host.disk_space import DiskLevel, DiskSpace
from core.host.early_stop import StopReason
from core.host.services import HostServices

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
GIB: Final = 1 << 30


class DiskWatch:
    """Watches the disk of one attempt; `look` is called at each of its ticks.

    Args:
        services: The host's.
        commits: What keeps fewer checkpoints when space is short.
        reserve_gib: What is to stay free.
        checkpoint: Bytes of the checkpoint that the run continues from; 0 without one.
        stop: Ends the run in order.
    """

    def __init__(
        self,
        services: HostServices,
        commits: CommitRunner,
        reserve_gib: float,
        checkpoint: int,
        stop: Callable[[StopReason], None],
    ) -> None:
        self._folder = services.store.dir
        self._services = services
        self._commits = commits
        self._space = DiskSpace(int(reserve_gib * GIB), commits.keep, checkpoint)
        self._stop = stop
        self._due = 0.0
        self._seen: int | None = None
        self._looking: asyncio.Task[None] | None = None

    def look(self, now: float) -> None:
        """Looks after each checkpoint and every 2 s; not while one is written or old ones are being removed."""
        newest = None if self._commits.newest is None else self._commits.newest.number
        if self._looking is not None or not self._commits.is_settled or (now < self._due and newest == self._seen):
            return
        self._due, self._seen = now + LOOK_EVERY_S, newest
        self._looking = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        # Not on the disk thread: a drive in trouble would hold back the run's own files.
        free = await asyncio.get_running_loop().run_in_executor(None, _free, self._folder)
        self._looking = None
        if free is None or not self._commits.is_settled:
            return
        before, newest = self._space, self._commits.newest
        self._space = space = before.measured(free, 0 if newest is None else newest.size_bytes)
        if space.level == before.level:
            return
        log.info("disk: %s with %d bytes free", space.level.name, free)
        self._commits.keep = space.kept
        if space.level > before.level:
            self._commits.prune()
            if space.level > DiskLevel.TIGHT or space.checkpoint:
                alert = space.alert(str(self._folder))
                self._services.stream.emit("alert", step=self._services.status.state.step, **alert)
            if space.level is DiskLevel.FULL:
                self._stop(StopReason("disk_reserve", space.stopped_by(str(self._folder))))
        elif before.level >= DiskLevel.LOW:
            self._services.stream.emit("alert_over", kind="disk_low", text="The disk has space again.")


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:  # the folder is gone, which `until_gone` notices, or the drive is away for a moment
        log.warning("the free space could not be read: %s", error)
        return None
