"""Ranks without a process group: one device alone, or parallel-independent ranks.

Each independent rank trains its own copy on its own chunks, so this also works with torch builds that have no working
gloo.
"""

from __future__ import annotations

from torch import nn

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies.base import RankPlace, Strategy
from workers.strategies.replica import Replica, Trained


class SingleStrategy(Strategy):
    """One device alone, also where a rank among others measures something by itself."""

    name = "single"

    def __init__(self, place: RankPlace) -> None:
        super().__init__(place)
        self.group_rank, self.group_size = 0, 1
        self._suffix = ""

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        trained = Trained(model, optimization.optimizer(model, lr), optimization, precision)
        return Replica(trained, self._suffix)


class IndependentStrategy(SingleStrategy):
    """Each rank a replica group of its own, in which it trains as one device alone."""

    name = "independent"
    synchronised = False

    def __init__(self, place: RankPlace) -> None:
        super().__init__(place)
        self.replica_group = self.copy = place.rank
        self._suffix = f"_rank{place.rank}"
