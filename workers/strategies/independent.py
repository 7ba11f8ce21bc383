"""Parallel-independent: every rank trains its own copy on its own chunks; nothing is exchanged while it trains.

There is no process group at all, so this also works with torch builds that have no working gloo. What becomes of
the copies is the merge policy's business (`workers.training.independent.model_merge`).
"""

from __future__ import annotations

from torch import nn

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies.replica import Replica
from workers.strategies.single import SingleStrategy


class IndependentStrategy(SingleStrategy):
    """Each rank a replica group of its own, in which it trains as one device alone."""

    name = "independent"

    @property
    def replica_group(self) -> int:
        """The rank's own."""
        return self.place.rank

    @property
    def synchronised(self) -> bool:
        """False: ranks step by themselves."""
        return False

    @property
    def copy(self) -> int:
        """This rank's own."""
        return self.place.rank

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """A whole copy a rank, written under the rank's name."""
        optimizer = optimization.optimizer(model, lr)
        return Replica(model, optimizer, optimization, precision, f"_rank{self.place.rank}")
