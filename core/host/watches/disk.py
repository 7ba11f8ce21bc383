"""The run folder's disk: notices that the folder is gone, keeps space for an orderly end, and stops a run in time."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from core.formatting import byte_size
from core.host.commits.runner import CommitRunner
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.watches.early_stop import StopReason
from core.host.watches.watch import Watch
from core.launch.checkpoint_size import FOR_THE_END

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0
# A network drive may be away for a moment; training continues meanwhile and nothing is lost.
GONE_LIMIT_S: Final = 5.0
RESERVED_BYTES: Final = 64 << 10
# Named as unfinished replacements are, so that the next host clears away what a killed one left.
NAME: Final = ".reserve.rankdeck-tmp"
SPACE_EVERY_S: Final = 2.0
GIB: Final = 1 << 30
_FLAG: Final = " (--disk-reserve)"


async def until_gone(path: Path, limit_s: float = GONE_LIMIT_S) -> None:
    """Return when `path` has been missing for `limit_s`. A look that hangs, as at a network drive, proves nothing.

    `path` is a file, since a host writes into a folder that is being emptied, and so keeps it.
    """
    loop = asyncio.get_running_loop()
    missing_since: float | None = None
    while missing_since is None or loop.time() - missing_since < limit_s:
        await asyncio.sleep(min(LOOK_EVERY_S, limit_s))
        there = await loop.run_in_executor(None, _is_there, path)
        missing_since = None if there else missing_since or loop.time()


def folder_gone(folder: Path) -> dict[str, str]:
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
    """64 KiB that a run keeps until its end, so that its last state can be written on a full disk."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / NAME
        try:
            self._path.write_bytes(secrets.token_bytes(RESERVED_BYTES))  # nothing that a file system could leave out
        except OSError as error:
            log.warning("no space could be kept for the last state: %s", error)

    def release(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the space kept for the last state could not be freed: %s", error)


class DiskLevel(IntEnum):
    """Fullness of the disk; each level adds to the actions of the level before.

    ``AMPLE``: nothing to do. ``LOW``: only the newest good checkpoint and the best one are kept, and an alert says that
    the run will stop. ``FULL``: the run is saved and stopped, for which there is room just yet.
    """

    AMPLE = 0
    LOW = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Facts about a run's disk, in bytes.

    Attributes:
        reserve: To stay free, also after the run's end.
        keep: Number of checkpoints that are kept while the disk is ample.
        checkpoint: The largest checkpoint so far; 0 before the first.
        level: It falls only once all removed checkpoints have room again: else each removal would bring it back.
    """

    reserve: int
    keep: int
    checkpoint: int = 0
    free: int = 0
    level: DiskLevel = DiskLevel.AMPLE

    def limit(self, level: DiskLevel) -> int:
        """Free bytes below which a level begins.

        The run stops while its last checkpoint and its model still fit above the reserve. The level before it begins
        two checkpoints earlier, or half the reserve where checkpoints are small.
        """
        margin = 2 * max(self.checkpoint, self.reserve // 4)
        return self.reserve + FOR_THE_END * self.checkpoint + (DiskLevel.FULL - level) * margin

    def measured(self, free: int, checkpoint: int) -> DiskSpace:
        now = dataclasses.replace(self, free=free, checkpoint=max(self.checkpoint, checkpoint))
        level = next((level for level in reversed(DiskLevel) if free < now.limit(level)), DiskLevel.AMPLE)
        if level < self.level and free < now.limit(DiskLevel.LOW) + self.keep * now.checkpoint:
            level = self.level
        return dataclasses.replace(now, level=level)

    @property
    def kept(self) -> int:
        return self.keep if self.level is DiskLevel.AMPLE else 1

    def stopped_by(self, folder: str) -> str:
        room = "The run was saved and stopped while there was room for its last checkpoint and its model."
        return f"{self._free('had', folder)} {room}"

    def _free(self, verb: str, folder: str) -> str:
        size = f", and a checkpoint takes {byte_size(self.checkpoint)}" if self.checkpoint else ""
        return f"The drive of {folder} {verb} {byte_size(self.free)} free{size}."

    def alert(self, folder: str) -> dict[str, Any]:
        free = self._free("has", folder)
        stop = byte_size(self.limit(DiskLevel.FULL))
        if self.level is DiskLevel.FULL:
            title, step, setting = "Stopping before the disk is full", "Free some space, then resume the run", ""
            what = "The run is being saved and stopped while there is room for its last checkpoint and its model."
        else:
            title, step = "The disk is nearly full", "Free some space on that drive, or keep less of it in reserve"
            what, setting = f"Only the newest and the best checkpoint are kept. Below {stop} the run is stopped.", _FLAG
        alert = {"kind": f"disk_{self.level.name.lower()}", "title": title, "cause": f"{free} {what}"}
        alert |= {"next_step": f"{step}{setting}."} | ({"window_step": f"{step}."} if setting else {})
        figures = {"free_bytes": self.free, "checkpoint_bytes": self.checkpoint, "reserve_bytes": self.reserve}
        return {**alert, **figures}


class DiskWatch(Watch):
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

    def tick(self, now: float, phase: AttemptPhase) -> None:
        """Look after each checkpoint and every 2 s; not while one is written or old ones are being removed."""
        if phase is not AttemptPhase.TRAINING:
            return
        newest = None if self._commits.newest is None else self._commits.newest.number
        if self._looking is not None or not self._commits.is_settled or (now < self._due and newest == self._seen):
            return
        self._due, self._seen = now + SPACE_EVERY_S, newest
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
            alert = space.alert(str(self._folder))
            self._services.stream.emit("alert", step=self._services.status.state.step, **alert)
            if space.level is DiskLevel.FULL:
                self._stop(StopReason("disk_reserve", space.stopped_by(str(self._folder))))
        else:
            self._services.stream.emit("alert_over", kind="disk_low", text="The disk has space again.")


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:  # the folder is gone, which `until_gone` notices, or the drive is away for a moment
        log.warning("the free space could not be read: %s", error)
        return None
