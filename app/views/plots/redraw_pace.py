"""How often charts draw what is new: the one place where that is decided.

Moving, zooming and pointing draw at once, whatever stands here. New points are drawn at the rate at which a person can
use them. Where ranks train on the CPU, what the window takes is taken from them, and in DDP all devices wait for the
slowest: the window as a whole is to take a twentieth of a core, of which drawing has the larger part.
"""

from __future__ import annotations

from typing import Final

LIVE_S: Final = 0.5
"""New points move a curve by a pixel or two in that time; more often than that cannot be seen."""
SLOWEST_S: Final = 2.0
LARGEST_SHARE: Final = 0.03
"""Of a processor."""
NEWEST_SHARE: Final = 0.3
"""How much the newest picture counts for what a picture costs: clocks of threads tick 64 times a second on Windows."""


class RedrawPace:
    """Learns what a picture of all charts costs, and gives the pause that follows from it."""

    def __init__(self) -> None:
        self._cost_s: float | None = None

    def learn(self, cost_s: float) -> None:
        """Takes note of the processor time of one picture."""
        before = cost_s if self._cost_s is None else self._cost_s
        self._cost_s = before + NEWEST_SHARE * (cost_s - before)

    @property
    def pause_s(self) -> float:
        """From the beginning of one picture to that of the next."""
        return min(max(LIVE_S, (self._cost_s or 0.0) / LARGEST_SHARE), SLOWEST_S)
