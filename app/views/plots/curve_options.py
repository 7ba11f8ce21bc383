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
    """What a person chose for all plots with ranks.

    Attributes:
        smoothing: Steps on each side that count for a point of the bold line; 0 turns smoothing off.
        mean: One curve, the mean over ranks, instead of one a rank.
        hidden: Ranks that are not drawn (and not in the mean).
        hidden_curves: Keys of other curves that are not drawn.
        names: What ranks are called in a readout.
    """

    smoothing: int = FIRST_SMOOTHING
    mean: bool = False
    hidden: set[int] = field(default_factory=set)
    hidden_curves: set[str] = field(default_factory=set)
    names: RankNames = field(default_factory=RankNames)

    def ranks(self, run: RunSeries) -> list[int]:
        return [rank for rank in self.offered(run) if rank not in self.hidden]

    def offered(self, run: RunSeries) -> list[int]:
        ranks = run.ranks()
        return ranks[:: -(-len(ranks) // MOST_RANKS)] if len(ranks) > MOST_RANKS else ranks

    def note(self, run: RunSeries) -> str:
        """Says that not all ranks are drawn; empty where they are."""
        ranks, offered = len(run.ranks()), len(self.offered(run))
        return f"{offered} of {ranks:,} devices" if offered < ranks else ""

    def is_hidden(self, key: str) -> bool:
        rank = rank_in(key)
        return key in self.hidden_curves if rank is None else rank in self.hidden

    def hide(self, key: str, hidden: bool) -> None:
        rank = rank_in(key)
        if rank is None:
            (self.hidden_curves.add if hidden else self.hidden_curves.discard)(key)
        else:
            (self.hidden.add if hidden else self.hidden.discard)(rank)

    def choose(self, key: str, alone: bool, keys: Sequence[str]) -> None:
        """Hides or shows a curve; or shows it alone, and if it is alone already, all.

        Args:
            key: The curve.
            alone: Hide the others.
            keys: All curves of its chart.
        """
        if not alone:
            self.hide(key, not self.is_hidden(key))
            return
        is_alone = [one for one in keys if not self.is_hidden(one)] == [key]
        for one in keys:
            self.hide(one, one != key and not is_alone)


def rank_in(key: str) -> int | None:
    """The rank whose curve a key names: "rank 3"; None for another curve."""
    return int(key[5:]) if key.startswith("rank ") else None
