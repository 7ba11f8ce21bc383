"""Options of all charts with a curve for each rank: what a person chose to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.run_data.run_series import RunSeries
from core.machine.devices.names import RankNames

FIRST_SMOOTHING: Final = 20
# Drawn, named and averaged; of more, these are picked evenly. Hundreds of curves cannot be told apart.
MOST_RANKS: Final = 32


@dataclass(slots=True)
class CurveOptions:
    """Choices for all plots with ranks, and facts about the run's devices.

    Attributes:
        smoothing: Steps on each side that count for a point of the bold line; 0 turns smoothing off.
        mean: One curve, the mean over ranks, instead of one a rank.
        hidden: Keys of curves that are not drawn: "eval"; "rank 3", which is not in a mean either.
        trained_on: UUIDs of the run's devices by rank.
        is_over: The run has ended: without a crosshair, a device's figures are means and peaks, not its last sample.
    """

    smoothing: int = FIRST_SMOOTHING
    mean: bool = False
    hidden: set[str] = field(default_factory=set)
    names: RankNames = field(default_factory=RankNames)
    trained_on: tuple[str, ...] = ()
    is_over: bool = False

    def ranks(self, run: RunSeries) -> list[int]:
        return [rank for rank in self.offered(run) if not self.is_hidden(rank_key(rank))]

    def offered(self, run: RunSeries) -> list[int]:
        ranks = run.ranks()
        return ranks[:: -(-len(ranks) // MOST_RANKS)] if len(ranks) > MOST_RANKS else ranks

    def note(self, run: RunSeries) -> str:
        """Say that not all ranks are drawn; empty where they are."""
        ranks, offered = len(run.ranks()), len(self.offered(run))
        return f"{offered} of {ranks:,} devices" if offered < ranks else ""

    def is_hidden(self, key: str) -> bool:
        return key in self.hidden

    def hide(self, key: str, hidden: bool) -> None:
        (self.hidden.add if hidden else self.hidden.discard)(key)

    def choose(self, key: str, alone: bool, keys: Sequence[str]) -> None:
        """Hides or shows a curve; `alone` shows it without the others of `keys`, or all if it is alone already."""
        if not alone:
            self.hide(key, not self.is_hidden(key))
            return
        is_alone = [one for one in keys if not self.is_hidden(one)] == [key]
        for one in keys:
            self.hide(one, one != key and not is_alone)


def rank_key(rank: int) -> str:
    """Names a rank's curve, in every chart."""
    return f"rank {rank}"
