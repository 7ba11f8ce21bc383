"""DDP: every rank holds the whole model, gradients are averaged in the last micro-batch of each step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from core.config import RunConfig
from core.config.run_config import EXCHANGES
from workers.all_reduce import GradientAllReduce, choose_all_reduce
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies.base import RankPlace, Strategy
from workers.strategies.process_group import make_process_group
from workers.strategies.replica import Replica, Trained

_DEFAULTS: Final = {
    "find_unused_parameters": False,
    "broadcast_buffers": True,
    "gradient_as_bucket_view": False,
}


class DdpStrategy(Strategy):
    """All ranks in one replica group, in step.

    `wanted_all_reduce`: as requested, or as an earlier attempt decided (`workers.all_reduce.WANTED`).
    """

    name = "ddp"
    can_balance = True

    def __init__(self, place: RankPlace, config: RunConfig) -> None:
        super().__init__(place)
        # Runs of earlier versions may ask for fewer bytes (bf16, fp16, powersgd), which is not offered any more.
        self.wanted_all_reduce = config.gradient_exchange if config.gradient_exchange in EXCHANGES else "auto"
        self._config = config
        self._all_reduce: GradientAllReduce | None = None
        self._flags: dist.ProcessGroup | None = None
        self._vote: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def setup(self) -> None:
        self._flags = make_process_group(self.place)

    def close(self) -> None:
        """Leave the process groups, and the shared memory before them."""
        if self._all_reduce is not None:
            self._all_reduce.close()
        if dist.is_initialized():
            dist.destroy_process_group()

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """The model behind DDP; rank 0 writes for all, since all hold the same."""
        trained = Trained(model, optimization.optimizer(model, lr), optimization, precision)
        return self._behind_ddp(DdpReplica(trained, "" if self.place.rank == 0 else None))

    def recall(self, counters: Mapping[str, Any]) -> None:
        """With more than two ranks gloo and shared memory add in different orders, so the same way is taken again."""
        same = (counters.get("mode"), counters.get("world_size")) == (self.name, self.place.world_size)
        if self.wanted_all_reduce == "auto" and same and "exchange" in counters:
            self.wanted_all_reduce = "shared" if counters["exchange"] == "shared" else "plain"

    def counters(self) -> dict[str, Any]:
        return {} if self._all_reduce is None else {"exchange": self._all_reduce.name}

    def figures(self) -> dict[str, Any]:
        if self._all_reduce is None:
            return {}
        return {"exchange": self._all_reduce.name, "words": self._all_reduce.summary}

    def _behind_ddp(self, replica: DdpReplica) -> DdpReplica:
        assert self._flags is not None
        self._all_reduce = choose_all_reduce(self._flags, self.place, self.wanted_all_reduce)
        replica.wrap(self.place, self._all_reduce, self._config)
        return replica

    def agree(self, flag: int) -> int:
        """Start an all_reduce(MAX) of this step's flag and return the outcome of the step before.

        It runs beside the next step, so it costs no waiting; every rank reads it at the same boundary.
        """
        outcome = self.settle()
        self._vote = torch.tensor([flag], dtype=torch.int64)
        self._work = dist.all_reduce(self._vote, op=dist.ReduceOp.MAX, group=self._flags, async_op=True)
        return outcome

    def settle(self) -> int:
        if self._work is None or self._vote is None:
            return 0
        self._work.wait()
        self._work = None
        return int(self._vote.item())

    def total(self, values: Sequence[float]) -> list[float]:
        sums = torch.tensor(list(values), dtype=torch.float64)
        if self._all_reduce is None:
            dist.all_reduce(sums, group=self._flags)
        else:
            self._all_reduce.total(sums, self._flags)
        return [float(value) for value in sums]


class DdpReplica(Replica):
    """A whole model whose gradients are averaged over the ranks, once `wrap` has put it behind DDP."""

    def wrap(self, place: RankPlace, all_reduce: GradientAllReduce, config: RunConfig) -> None:
        self._place = place
        self._all_reduce = all_reduce
        on_cpu = place.device.type == "cpu"
        self.module = self._wrapped = DistributedDataParallel(
            self.model,
            device_ids=None if on_cpu else [place.device],
            **_ddp_arguments(config),
        )
        all_reduce.register(self._wrapped)
        sampled: Any = self._wrapped
        sampled._set_ddp_runtime_logging_sample_rate(1)  # times every step, for `sync_wait_s`
        self._sends_buffers = config.broadcast_buffers and any(True for _ in self.model.buffers())

    def micro_batch(self, *, last: bool) -> AbstractContextManager[object]:
        """Gradients are all-reduced in the last micro-batch only, and buffers sent before its forward pass."""
        self.in_collective = last and self._sends_buffers
        return nullcontext() if last else self._wrapped.no_sync()

    def backward(self, loss: Tensor, *, last: bool) -> None:
        self.in_collective = last
        super().backward(loss, last=last)

    def sync_wait_s(self) -> float | None:
        """Time in which the all-reduce ran while no gradient was being computed."""
        shared = self._all_reduce.through_shared_memory
        return self._all_reduce.sync_wait_s if shared else self._process_group_wait_s()

    def _process_group_wait_s(self) -> float | None:
        """By DDP's own clock. On GPUs it reads events of a step that is over by now: its norm was read."""
        sampled: Any = self._wrapped
        # DDP itself does so at the next forward pass only.
        sampled.logger.set_runtime_stats_and_log()
        times: dict[str, int] = sampled._get_ddp_logging_data()
        spent, overlap = times.get("backward_comm_time"), times.get("backward_compute_comm_overlap_time")
        if spent is None or overlap is None:
            return None
        return max(0.0, (spent - overlap) / 1e9)


def _ddp_arguments(config: RunConfig) -> dict[str, Any]:
    """Arguments that differ from DDP's defaults, by the names of the installed torch.

    torch 2.13 has renamed `broadcast_buffers` and warns of the old name in every rank, also at its default.
    """
    asked = {name: getattr(config, name) for name in _DEFAULTS}
    arguments = {name: value for name, value in asked.items() if value != _DEFAULTS[name]}
    parameters = inspect.signature(DistributedDataParallel.__init__).parameters
    if "broadcast_buffers" in arguments and "forward_sync_buffers" in parameters:
        arguments["forward_sync_buffers"] = arguments.pop("broadcast_buffers")
    return arguments
