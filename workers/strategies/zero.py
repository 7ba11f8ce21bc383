"""ZeRO stage 1: DDP whose optimizer state is spread over the ranks (torch's ZeroRedundancyOptimizer).

Losses are bit-equal to DDP's; the Adam state of each rank shrinks by the number of ranks. Over gloo it sends about
half as many bytes again as DDP, so it buys memory, not speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from workers.strategies.base import ParameterGroups, StateFiles
from workers.strategies.ddp import DdpStrategy


class ZeroStrategy(DdpStrategy):
    """DDP with a sharded optimizer."""

    name = "zero"

    def optimizer(self, groups: ParameterGroups, kind: Callable[..., Optimizer], **options: Any) -> Optimizer:
        """`kind`, holding the state of this rank's share of the parameters only."""
        from torch.distributed.optim import ZeroRedundancyOptimizer

        sharded: Callable[..., Optimizer] = ZeroRedundancyOptimizer
        return sharded(groups, optimizer_class=kind, parameters_as_bucket_view=False, **options)

    def files(self) -> StateFiles:
        """Rank 0 writes the weights, every rank its shard of the optimizer."""
        weights = "weights.safetensors" if self.place.rank == 0 else None
        return StateFiles(weights, f"optimizer_shard{self.place.rank}.safetensors")

    def sources(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All shards; which parameter belongs to whom is worked out again, so another world size may read them."""
        weights, _ = super().sources()
        return tuple(weights), (
            "optimizer_shard*.safetensors",
            "optimizer.safetensors",
            "optimizer_rank0.safetensors",
        )
