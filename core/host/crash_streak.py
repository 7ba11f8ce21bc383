"""Crash streak: ranks that end without a report, start after start, and make no step that is new. Pure.

On several machines such a rank may have died with something around it, so all ranks are started again from the last
checkpoint. If they get no farther, the reason lies in the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.config import RunConfig
from core.errors import sentences
from core.host.failures import RankFailure, ending

RESTARTS: Final = 3
"""As for hangs. One crash may be chance (memory that another program took, a kill by hand), and so may a second that
meets the first restart; each costs the start of all ranks, half a minute with a large model."""


def crash_limit(config: RunConfig) -> int:
    """How many restarts in a row may make no new step."""
    return max(RESTARTS, config.max_restarts)


@dataclass(frozen=True, slots=True)
class CrashStreak:
    """Crashes in a row.

    Attributes:
        step: The farthest that a rank had got which crashed; others may train on for a while, if they are independent.
        checkpoint: The number of its newest checkpoint then.
        endings: Device and kind of each crash, as text: the first, which may have come after new steps, and those
            since, which came before any.
    """

    step: int = -1
    checkpoint: int = 0
    endings: tuple[str, ...] = ()

    def after(self, failure: RankFailure, checkpoint: int | None) -> CrashStreak:
        """The streak with another crash; `checkpoint` is the newest one's number."""
        step, newest = max(failure.step, self.step), max(checkpoint or 0, self.checkpoint)
        is_farther = step > self.step or newest > self.checkpoint
        return CrashStreak(step, newest, (*(() if is_farther else self.endings), ending(failure)))

    @property
    def number(self) -> int:
        """How many crashes these are, and which number a restart after the last one has."""
        return len(self.endings)

    def explain(self, error: Mapping[str, str]) -> dict[str, str]:
        """The error of the last crash, as the reason why the run is not started again."""
        counted = "; ".join(f"{_times(count)} {how}" for how, count in Counter(self.endings).most_common())
        streak = (
            f"{self.number} starts in a row ended so, and none after the first made a step that had not been made "
            f"before: {counted}."
        )
        step = "Find the cause first: the run ends at the same place again otherwise."
        return {
            **error,
            "title": f"The run crashed {_times(self.number)} without a new step",
            "cause": sentences(error.get("cause", ""), streak),
            "next_step": sentences(step, error.get("next_step", "")),
        }


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
