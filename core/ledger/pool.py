"""Pool of an epoch's unclaimed chunks: the next one of each replica group, and whose it may take when it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class EpochPool:
    """Unclaimed chunks of one epoch.

    Args:
        queues: Each replica group's own chunks (their indices), in the order in which it trains them.
    """

    def __init__(self, queues: Iterable[Iterable[int]]) -> None:
        self._queues = [deque(queue) for queue in queues]

    def take(self, group: int, *, stealing: bool) -> int | None:
        """The replica group's next chunk, which no other one gets after that; None when there is none for it.

        Args:
            group: Who asks.
            stealing: A replica group that is done with its own takes from the one that has most left the chunk which
                that one would come to last, so that each trains as many of its own as it can.
        """
        own = self._queues[group]
        if own:
            return own.popleft()
        fullest = max(self._queues, key=len)
        return fullest.pop() if stealing and fullest else None
