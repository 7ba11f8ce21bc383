"""ZeRO stage 1 with torch's own means: DDP whose optimizer state is spread over the ranks (ZeroRedundancyOptimizer).

Losses are bit-equal to DDP's; the Adam state of each rank shrinks by the number of ranks. Over gloo it sends about
half as many bytes again as DDP, so it buys memory, not speed.
"""

from __future__ import annotations

from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.slices import StatePart
from workers.strategies.ddp import DdpReplica, DdpStrategy
from workers.strategies.replica import Replica, optimizer_part


class ZeroStrategy(DdpStrategy):
    """DDP with a sharded optimizer."""

    name = "zero"

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """Each rank's optimizer holds the state of its share of the parameters only."""
        optimizer = ZeroRedundancyOptimizer(
            optimization.groups(model),
            optimizer_class=optimization.kind,  # type: ignore[arg-type]  # whatever makes one: torch only calls it
            parameters_as_bucket_view=False,
            **optimization.arguments(model, lr),
        )
        return ZeroReplica(self._wrapping(model), model, optimizer, optimization, precision, "")


class ZeroReplica(DdpReplica):
    """Rank 0 writes the weights, every rank its shard of the optimizer and what its all-reduce has to remember."""

    def parts(self) -> list[StatePart]:
        """See the class."""
        state, values = optimizer_part(self.optimizer, self._optimization)
        parts = [StatePart(f"optimizer_shard{self._place.rank}.safetensors", state, values)]
        if self._place.rank == 0:
            parts.append(StatePart("weights.safetensors", self.model.state_dict(keep_vars=True), {}))
        return [*parts, *self._all_reduce_parts()]
