"""One device alone."""

from __future__ import annotations

from torch import nn

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies.base import Strategy
from workers.strategies.replica import Replica


class SingleStrategy(Strategy):
    """No other rank, no process group."""

    name = "single"

    @property
    def group_rank(self) -> int:
        """Always 0, also when a rank among others measures something by itself."""
        return 0

    @property
    def group_size(self) -> int:
        """Always 1."""
        return 1

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """The plain case."""
        return Replica(model, optimization.optimizer(model, lr), optimization, precision)
