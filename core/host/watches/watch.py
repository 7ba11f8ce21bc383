"""Watch: the interface through which an attempt calls each of its watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.host.ranks import Rank
from core.host.states import AttemptPhase


class Watch:
    """Looks at an attempt's ranks, or at the machine. The calls come on the event loop; those that are not async return
    at once. A watch overrides the ones that it needs.
    """

    async def begin(self) -> None:
        """No rank has been started yet."""

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        """A rank's metrics lines, written already."""

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Readings of the run's devices, one a second; a row names its device as `uuid`."""

    def tick(self, now: float, phase: AttemptPhase) -> None:
        """Time has passed: `now` is in seconds on the monotonic clock."""

    def cancel(self) -> None:
        """The run is being stopped, or the attempt ends: what is under way is given up."""

    async def close(self) -> None:
        """All ranks have ended."""
