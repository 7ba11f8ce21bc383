"""An epoch's chunks that nobody has claimed yet, lane by lane: who gets which next, and who may take from whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class EpochPool:
    """Unclaimed chunks of one epoch.

    Args:
        queues: Each lane's own chunks (their indices), in the order in which it trains them.
    """

    def __init__(self, queues: Iterable[Iterable[int]]) -> None:
        self._queues = [deque(queue) for queue in queues]

    def take(self, lane: int, *, stealing: bool) -> int | None:
        """The lane's next chunk, which nobody else gets after that; None when there is none for it.

        Args:
            lane: Who asks.
            stealing: A lane that is done with its own takes the last one of the lane that has most left: what that
                lane would come to last, so that each trains as many of its own as it can.
        """
        own = self._queues[lane]
        if own:
            return own.popleft()
        fullest = max(self._queues, key=len)
        return fullest.pop() if stealing and fullest else None
