"""Disk space of a run: how near its end is, from what is free and what a checkpoint takes. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from core.formatting import byte_size
from core.launch.checkpoint_size import FOR_THE_END


class DiskLevel(IntEnum):
    """How full the disk is; each level does what the one before does, and more.

    ``AMPLE``: nothing to do. ``TIGHT``: only the newest good checkpoint and the best one are kept. ``LOW``: a warning
    that the run will stop. ``FULL``: the run is saved and stopped, for which there is room just yet.
    """

    AMPLE = 0
    TIGHT = 1
    LOW = 2
    FULL = 3


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """What is known of a run's disk.

    Attributes:
        reserve: Bytes that are to stay free, also after the run's end.
        checkpoint: Bytes of the largest checkpoint so far; 0 before the first.
        keep: Checkpoints that are kept while the disk is ample.
        free: Bytes that are free now.
        level: It falls only once all that was not kept has room again: else each removal would bring it back.
    """

    reserve: int
    keep: int
    checkpoint: int = 0
    free: int = 0
    level: DiskLevel = DiskLevel.AMPLE

    def limit(self, level: DiskLevel) -> int:
        """Free bytes below which a level begins.

        The run stops while its last checkpoint and its model still fit above the reserve. A warning comes one
        checkpoint earlier, or a quarter of the reserve where checkpoints are small; removing old ones two.
        """
        return self.reserve + FOR_THE_END * self.checkpoint + (DiskLevel.FULL - level) * self._margin

    @property
    def _margin(self) -> int:
        return max(self.checkpoint, self.reserve // 4)

    def measured(self, free: int, checkpoint: int) -> DiskSpace:
        """After a look at the disk, with the newest checkpoint's bytes."""
        now = dataclasses.replace(self, free=free, checkpoint=max(self.checkpoint, checkpoint))
        level = next((level for level in reversed(DiskLevel) if free < now.limit(level)), DiskLevel.AMPLE)
        if level < self.level and free < now.limit(DiskLevel.TIGHT) + self.keep * now.checkpoint:
            level = self.level
        return dataclasses.replace(now, level=level)

    @property
    def kept(self) -> int:
        return self.keep if self.level is DiskLevel.AMPLE else 1

    def stopped_by(self, folder: str) -> str:
        """Why the run in `folder` was stopped, as it stands in its state afterwards."""
        room = "The run was saved and stopped while there was room for its last checkpoint and its model."
        return f"{self._free('had', folder)} {room}"

    def _free(self, verb: str, folder: str) -> str:
        size = f", and a checkpoint takes {byte_size(self.checkpoint)}" if self.checkpoint else ""
        return f"The drive of {folder} {verb} {byte_size(self.free)} free{size}."

    def alert(self, folder: str) -> dict[str, Any]:
        """The fields of the alert about this level, whose folder is `folder`."""
        free = self._free("has", folder)
        stop = byte_size(self.limit(DiskLevel.FULL))
        title, what, step, setting = {
            DiskLevel.TIGHT: (
                "Disk space is getting short",
                "From now on only the newest good checkpoint and the best one are kept; older ones were removed.",
                "Free some space to keep more checkpoints.",
                "",
            ),
            DiskLevel.LOW: (
                "The disk is nearly full",
                f"Below {stop} the run is saved and stopped.",
                "Free some space on that drive, or keep less of it in reserve",
                " (--disk-reserve)",
            ),
            DiskLevel.FULL: (
                "Stopping before the disk is full",
                "The run is being saved and stopped while there is room for its last checkpoint and its model.",
                "Free some space, then resume the run.",
                "",
            ),
        }[self.level]
        alert = {"kind": f"disk_{self.level.name.lower()}", "title": title, "cause": f"{free} {what}"}
        alert |= {"next_step": f"{step}{setting}".rstrip(".") + "."}
        if setting:
            alert["window_step"] = f"{step}."
        figures = {"free_bytes": self.free, "checkpoint_bytes": self.checkpoint, "reserve_bytes": self.reserve}
        return {**alert, **figures}
