"""DDP: every rank holds the whole model, gradients are averaged in the last micro-batch of each step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from workers.strategies.base import RankPlace, StateFiles, Strategy
from workers.strategies.process_group import make_process_group


class DdpStrategy(Strategy):
    """All ranks in one lane, in step."""

    name = "ddp"

    def __init__(self, place: RankPlace) -> None:
        super().__init__(place)
        self._flags: dist.ProcessGroup | None = None
        self._vote: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def setup(self) -> None:
        """Meets the other ranks."""
        self._flags = make_process_group(self.place)

    def close(self) -> None:
        """Leaves the process groups."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model behind DDP; gradients live in the buckets, so nothing is copied to be sent."""
        wrapped = DistributedDataParallel(
            model,
            device_ids=[self.place.device] if self.place.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
        )
        if self.place.device.type == "cpu":
            sampled: Any = wrapped
            sampled._set_ddp_runtime_logging_sample_rate(1)  # times every step, for `sync_wait_s`
        return wrapped

    def accumulate(self, wrapped: nn.Module, *, last: bool) -> AbstractContextManager[object]:
        """Exchanges gradients in the last micro-batch only."""
        if last or not isinstance(wrapped, DistributedDataParallel):
            return nullcontext()
        return wrapped.no_sync()

    def agree(self, flag: int) -> int:
        """Starts an all_reduce(MAX) of this step's flag and returns the outcome of the step before.

        It runs beside the next step, so it costs no waiting; every rank reads it at the same boundary.
        """
        outcome = self.settle()
        self._vote = torch.tensor([flag], dtype=torch.int64)
        self._work = dist.all_reduce(self._vote, op=dist.ReduceOp.MAX, group=self._flags, async_op=True)
        return outcome

    def settle(self) -> int:
        """Waits for the vote that is out."""
        if self._work is None or self._vote is None:
            return 0
        self._work.wait()
        self._work = None
        return int(self._vote.item())

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over the ranks."""
        sums = torch.tensor(list(values), dtype=torch.float64)
        dist.all_reduce(sums, group=self._flags)
        return [float(value) for value in sums]

    def sync_wait_s(self, wrapped: nn.Module) -> float | None:
        """Time in which the gradient exchange ran while no gradient was being computed, by DDP's own clock (CPU)."""
        if self.place.device.type != "cpu" or not isinstance(wrapped, DistributedDataParallel):
            return None
        sampled: Any = wrapped
        sampled.logger.set_runtime_stats_and_log()  # DDP itself does so at the next forward pass only
        times: dict[str, int] = sampled._get_ddp_logging_data()
        exchange, overlap = times.get("backward_comm_time"), times.get("backward_compute_comm_overlap_time")
        if exchange is None or overlap is None:
            return None
        return max(0.0, (exchange - overlap) / 1e9)

    def files(self) -> StateFiles:
        """Rank 0 writes for all, since all hold the same."""
        if self.place.rank != 0:
            return StateFiles(None, None)
        return StateFiles("weights.safetensors", "optimizer.safetensors")

    def sources(self) -> tuple[Sequence[str], Sequence[str]]:
        """The run's own, else what another mode left."""
        return (
            ("weights.safetensors", "weights_rank0.safetensors"),
            ("optimizer.safetensors", "optimizer_shard*.safetensors", "optimizer_rank0.safetensors"),
        )
