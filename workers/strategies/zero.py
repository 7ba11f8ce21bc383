"""ZeRO stage 1 with torch's own means: DDP whose optimizer state is spread over the ranks (ZeroRedundancyOptimizer).

Losses are bit-equal to DDP's; the Adam state of each rank shrinks by the number of ranks. Over gloo it sends about
half as many bytes again as DDP, so it buys memory, not speed.
"""

from __future__ import annotations

from torch import is_tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.saved_state import SavedState
from workers.strategies.ddp import DdpReplica, DdpStrategy
from workers.strategies.replica import Replica, Trained, optimizer_state


class ZeroStrategy(DdpStrategy):
    name = "zero"

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """Each rank holds, and writes, the optimizer's state of its share of the parameters; rank 0 the weights."""
        optimizer = ZeroRedundancyOptimizer(
            optimization.groups(model),
            optimizer_class=optimization.kind,  # type: ignore[arg-type]  # whatever makes one: torch only calls it
            parameters_as_bucket_view=False,
            **optimization.arguments(model, lr),
        )
        rank = self.place.rank
        suffixes = ("" if rank == 0 else None, f"_shard{rank}")
        return self._behind_ddp(ZeroReplica(Trained(model, optimizer, optimization, precision), *suffixes))


class ZeroReplica(DdpReplica):
    def load(self, saved: SavedState) -> None:
        """Load as every mode; then move Adam's counts of steps back to the GPU, where its fused kernel reads them.

        torch 2.13's `ZeroRedundancyOptimizer.load_state_dict` moves all tensors without dimensions to the CPU.
        """
        super().load(saved)
        fused = {
            parameter for group in self.optimizer.param_groups if group.get("fused") for parameter in group["params"]
        }
        for parameter, state in optimizer_state(self.optimizer).items():
            if parameter in fused:
                state.update({name: value.to(parameter.device) for name, value in state.items() if is_tensor(value)})
