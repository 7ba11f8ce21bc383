"""Pace: how often a rank reports, and from when on it reports too late. Pure; all times are an `AwakeClock`'s."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Final

SHORTEST_S: Final = 60.0
# Times its typical step that a rank may take for one.
STEPS: Final = 10.0
# Times its longest pause so far that a rank may be silent: some recipes play games between two chunks.
PAUSES: Final = 2.0
# Steps that make a typical one.
ENOUGH: Final = 3
REMEMBERED: Final = 51
# Times the limit during an evaluation, while a checkpoint is begun, and while a script computes.
PATIENCE: Final = 10.0
AWAY_S: Final = 5.0


class AwakeClock:
    """Seconds in which ranks were watched: a clock that stands while the computer sleeps.

    The monotonic clock continues in sleep under Windows, and not under Linux. A host that was itself suspended could
    not hear its ranks either. So it counts the time between two looks, unless it is too long to be one.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._looked_at: float | None = None

    def read(self, monotonic_s: float, *, counts: bool = True) -> float:
        before, self._looked_at = self._looked_at, monotonic_s
        if before is not None and counts and 0.0 < monotonic_s - before <= AWAY_S:
            self.now += monotonic_s - before
        return self.now


@dataclass(slots=True)
class Pace:
    """The pace of one rank's reports; `longest_s` is its longest pause in training, but for long activities."""

    heard_at: float | None = None
    longest_s: float = 0.0
    stepped_at: float | None = None
    _steps: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _since_step: float | None = None

    @property
    def typical_s(self) -> float | None:
        """The median time between its reports of steps, but for long activities; None before there are enough.

        Steps reported together count as one: a rank is silent that long if all is well.
        """
        return statistics.median(self._steps) if len(self._steps) >= ENOUGH else None

    def heard(self, now: float, *, is_step: bool, was_busy: bool) -> None:
        pause_s = 0.0 if self.heard_at is None or was_busy else now - self.heard_at
        self.heard_at = now
        self.longest_s = max(self.longest_s, pause_s)
        if self._since_step is not None:
            self._since_step += pause_s
        if is_step:
            self.stepped_at = now
            if self._since_step is not None:
                self._steps.append(self._since_step)
            self._since_step = 0.0

    def rest(self, now: float) -> None:
        if self.heard_at is not None:
            self.heard_at = now

    def limit_s(self, asked_s: float | None, *, is_busy: bool) -> float | None:
        limit_s = asked_s
        if limit_s is None and (typical_s := self.typical_s) is not None:
            limit_s = max(SHORTEST_S, STEPS * typical_s, PAUSES * self.longest_s)
        return limit_s if limit_s is None or not is_busy else PATIENCE * limit_s

    def silent_s(self, now: float) -> float:
        return 0.0 if self.heard_at is None else now - self.heard_at
