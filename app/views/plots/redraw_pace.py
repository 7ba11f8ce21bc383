"""Pace of live charts: the one place that decides how often they draw what is new.

Moving, zooming and pointing draw at once, whatever stands here. New points are drawn as often as a person can use them,
and seldomer where a picture costs much. Beside training on the CPU it is taken from that, and in DDP all devices wait
for the slowest: the aim is a twentieth of a core for the window as a whole, and this leaves enough for the rest.
"""

from __future__ import annotations

from typing import Final

# New points move a curve by a pixel or two in that time; more often than that cannot be seen.
LIVE_S: Final = 0.5
# Of a processor.
LARGEST_SHARE: Final = 0.05
SLOWEST_S: Final = 1.0
# New points that move the end of a curve by less than this are not drawn, only read.
UNSEEN_PIXELS: Final = 1.0
# Yet one of them may be a peak, which is seen at any width.
LONGEST_UNSEEN_S: Final = 10.0
SPARING_SHARE: Final = 0.015
SPARING_SLOWEST_S: Final = 3.0
# How much the newest picture counts for what a picture costs: clocks of threads tick 64 times a second on Windows.
NEWEST_SHARE: Final = 0.3


class RedrawPace:
    """Learns what a picture of all charts costs, and gives the pause that follows from it."""

    def __init__(self) -> None:
        self._cost_s: float | None = None

    def learn(self, cost_s: float) -> None:
        """Takes note of the processor time of one picture."""
        before = cost_s if self._cost_s is None else self._cost_s
        self._cost_s = before + NEWEST_SHARE * (cost_s - before)

    def is_worth_drawing(self, pixels: float, since_s: float) -> bool:
        """Whether new points change a picture so that a person sees it.

        Args:
            pixels: By how much they move the end of the curves.
            since_s: Since the picture was made.
        """
        return not 0.0 <= pixels < UNSEEN_PIXELS or since_s >= LONGEST_UNSEEN_S

    def pause_s(self, *, sparing: bool) -> float:
        """From the beginning of one picture to that of the next.

        Args:
            sparing: A run trains on this processor, and the mouse is not over a chart.
        """
        share, slowest_s = (SPARING_SHARE, SPARING_SLOWEST_S) if sparing else (LARGEST_SHARE, SLOWEST_S)
        return min(max(LIVE_S, (self._cost_s or 0.0) / share), slowest_s)
