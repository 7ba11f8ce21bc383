"""Survivor checkpoint: independent ranks save once more, within a time limit, when another rank has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.host.ranks import Rank


@dataclass(frozen=True, slots=True)
class SurvivorCheckpoint:
    """The ranks that outlived a failure and were asked to commit and stop.

    Attributes:
        survivors: Empty when there is nothing to save.
        until: The end of the time limit, in seconds on the monotonic clock.
    """

    survivors: Sequence[Rank]
    until: float

    def is_over(self, now: float, committing: bool) -> bool:
        """Every survivor has committed or ended, or the time is up."""
        waiting = [rank for rank in self.survivors if rank.done is None and rank.exited_at is None]
        return now >= self.until or (not waiting and not (committing and self.survivors))
