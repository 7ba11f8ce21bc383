"""What ranks that train alone may still save when another one has failed: one more commit, within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.host.ranks import Rank


@dataclass(frozen=True, slots=True)
class Rescue:
    """The survivors of a failure, who were told to commit and stop.

    Attributes:
        survivors: Empty when there is nothing to rescue.
        until: When patience ends, in seconds on the monotonic clock.
    """

    survivors: Sequence[Rank]
    until: float

    def is_over(self, now: float, committing: bool) -> bool:
        """Every survivor has committed or ended, or the time is up."""
        waiting = [rank for rank in self.survivors if rank.done is None and rank.exited_at is None]
        return now >= self.until or (not waiting and not (committing and self.survivors))
