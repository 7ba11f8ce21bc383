"""Hang watch: notices ranks in training that have reported nothing for long. A rank that hangs neither fails nor ends.

What follows is `core.host.hang_response`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.host.pace import SHORTEST_S, AwakeClock
from core.host.ranks import Rank, Ranks
from core.processes import process_state


class HangWatch:
    """Checks how long ago each rank was heard, and names those that are late, each once until all are heard again.

    Args:
        ranks: The attempt's.
        limit_s: How long a rank may say nothing; None: as long as its own pace says.
        on_hang: Called with ranks that are late, and for how long the first of them has said nothing.
        on_over: Called when all that were late are heard again.
        is_held: Whether ranks are not listened to just now, because the disk is behind.
        is_stopped: Whether a process is suspended.
    """

    def __init__(
        self,
        ranks: Ranks,
        limit_s: float | None,
        on_hang: Callable[[Sequence[Rank], float], None],
        on_over: Callable[[], None],
        is_held: Callable[[], bool] = lambda: False,
        is_stopped: Callable[[int], bool] = process_state.is_stopped,
    ) -> None:
        self._ranks = ranks
        self._limit_s = limit_s
        self._on_hang = on_hang
        self._on_over = on_over
        self._is_held = is_held
        self._is_stopped = is_stopped
        self._clock = AwakeClock()
        self._named: set[int] = set()

    def heard(self, rank: Rank, now: float, *, is_step: bool = False) -> None:
        """A rank has said something, `now` on the monotonic clock; called before the rank takes note of what it was."""
        in_training = rank.trains or rank.phase == "ready"
        was_busy = rank.takes_its_time or not in_training
        rank.pace.heard(self._read_clock(now), is_step=is_step, was_busy=was_busy)

    def look(self, now: float) -> None:
        """Checks all ranks once, `now` on the monotonic clock."""
        moment = self._read_clock(now)
        for rank in self._ranks:
            if rank.first_step is not None and not rank.trains:
                rank.pace.rest(moment)
        late = [rank for rank in self._ranks if self.is_late(rank)]
        new = [rank for rank in late if rank.number not in self._named]
        if new:
            self._named |= {rank.number for rank in late}
            self._on_hang(late, max(self.silent_s(rank) for rank in late))
        elif self._named and not late:
            self._named.clear()
            self._on_over()

    def is_late(self, rank: Rank) -> bool:
        """Whether a rank has been silent for too long. Of ranks that wait for each other, all have to be.

        A suspended process does nothing of what may last long, so neither is waited for.
        """
        if self._is_overdue(rank, is_busy=False) and rank.pid is not None and self._is_stopped(rank.pid):
            return True
        if not self._ranks.connected:
            return self._is_overdue(rank, is_busy=rank.takes_its_time)
        return rank.trains and all(
            self._is_overdue(other, is_busy=other.takes_its_time) for other in self._ranks if other.trains
        )

    def silent_s(self, rank: Rank) -> float:
        """How long a rank has said nothing."""
        return rank.pace.silent_s(self._clock.now)

    def _is_overdue(self, rank: Rank, *, is_busy: bool) -> bool:
        silent_s = self.silent_s(rank)
        if not rank.trains or (self._limit_s is None and silent_s <= SHORTEST_S):  # its own pace allows no less
            return False
        limit_s = rank.pace.limit_s(self._limit_s, is_busy=is_busy)
        return limit_s is not None and silent_s > limit_s

    def _read_clock(self, now: float) -> float:
        return self._clock.read(now, counts=not self._is_held())
