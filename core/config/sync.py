"""Sync interval: how independent ranks synchronise their weights every `sync_every` steps.

Plain averaging is the outer optimizer with learning rate 1 and momentum 0, so both methods are one rule with two
numbers. The measurements behind the numbers by interval stand in `docs/decisions/0015-sync-interval.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.config.run_config import RunConfig

AVERAGE: Final = "average"
DILOCO: Final = "diloco"

# From this interval on `auto` takes the outer optimizer; the shorter ones are nearly DDP.
DILOCO_FROM: Final = 5
LONG_FROM: Final = 25
OUTER_SHORT: Final = (0.5, 0.8)
# Outer learning rate and momentum below `LONG_FROM` and from there on, found for intervals of 10 and of 50 steps. The
# mean of ranks with Adam moves less than DDP does, so both go on by lr / (1 - momentum) > 1 times it. More than about
# twice is too much where rounds are few and long.
OUTER_LONG: Final = (1.0, 0.5)


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """The interval and the method of synchronising ranks' weights.

    Attributes:
        every: Optimizer steps of each rank between two rounds (H).
        method: "average" or "diloco", never "auto".
        outer_lr: The share of the way from the shared weights to the ranks' mean; 1 takes the mean itself.
    """

    every: int
    method: str
    outer_lr: float
    outer_momentum: float

    @property
    def text(self) -> str:
        """For a person: "every 50 steps by DiLoCo (outer learning rate 1, momentum 0.5)"."""
        steps = "every step" if self.every == 1 else f"every {self.every:,} steps"
        if self.method == AVERAGE:
            return f"{steps} by averaging"
        return f"{steps} by DiLoCo (outer learning rate {self.outer_lr:g}, momentum {self.outer_momentum:g})"


def resolve_synchronisation(config: RunConfig) -> Synchronisation | None:
    """Decide how independent ranks synchronise; None when they never do."""
    every = config.sync_every
    if every is None:
        return None
    if config.sync_method == AVERAGE or (config.sync_method == "auto" and every < DILOCO_FROM):
        return Synchronisation(every, AVERAGE, 1.0, 0.0)
    return Synchronisation(every, DILOCO, *(OUTER_SHORT if every < LONG_FROM else OUTER_LONG))
