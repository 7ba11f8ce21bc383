"""Fewer bytes for DDP's gradients over a process group: half precision on the wire, and PowerSGD.

torch's own bfloat16 hook refuses anything but NCCL by its name, so there is one here.

PowerSGD (Vogels et al., arXiv 1905.13727) is torch's hook, with a memory that can be saved: each rank adds what its
last approximation left out to its next gradient (algorithm 2 there, error feedback), and starts the next approximation
from the last one. A run that continues without these is another run for a while. Over gloo the hook mixes up its
callbacks when there are several buckets (sizes differ between ranks, then a crash, in some runs): it gets one bucket.
"""

# No `from __future__ import annotations`: DDP compares the hooks' annotations with types, not with their names.

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

COMPRESSIONS: Final = ("fp16", "bf16", "powersgd")
MATRIX_RANK: Final = 4
# Steps with whole gradients first: the approximation starts from what it has seen.
WHOLE_STEPS: Final = 10
Memory: TypeAlias = tuple[dict[str, Tensor], dict[str, Any]]


def half_precision_bucket(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """The mean over all ranks, sent and summed as bfloat16."""
    del state
    buffer = bucket.buffer()
    small = buffer.to(torch.bfloat16).div_(dist.get_world_size())
    sent = dist.all_reduce(small, async_op=True)
    assert sent is not None
    future: torch.futures.Future[Tensor] = sent.get_future().then(lambda done: buffer.copy_(done.value()[0]))
    return future


class PowerSgd:
    """One model's approximation of gradients.

    Args:
        model: The one that DDP wraps; its parameters' names tell whether a memory fits.
    """

    def __init__(self, model: nn.Module) -> None:
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._device = next(model.parameters()).device
        self._order: dict[str, list[str]] = {}
        self._recalled: Memory | None = None
        self.forget()

    def average(self, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
        """About the mean of one bucket over all ranks."""
        order = [self._names[id(parameter)] for parameter in bucket.parameters()]
        self._order[str(bucket.index())] = order
        if self._recalled is not None:
            self._take_up(*self._recalled, fits=self._recalled[1]["order"].get(str(bucket.index())) == order)
            self._recalled = None
        future: torch.futures.Future[Tensor] = powerSGD_hook.powerSGD_hook(self._state, bucket)
        return future

    def memory(self) -> Memory:
        """What this rank has to know to go on: live tensors, "<what>.<bucket>", and plain values.

        The errors are this rank's own; all else is the same on every rank.
        """
        if self._recalled is not None:
            return self._recalled
        tensors = {f"{what}.{bucket}": held[bucket] for what, held in self._held().items() for bucket in held}
        return tensors, {"steps": self._state.iter, "order": self._order}

    def forget(self) -> None:
        """Starts from nothing, with whole gradients at first; every rank at the same step."""
        self._state: Any = powerSGD_hook.PowerSGDState(
            process_group=None, matrix_approximation_rank=MATRIX_RANK, start_powerSGD_iter=WHOLE_STEPS
        )

    def recall(self, memory: Memory) -> None:
        """Continues from a memory with the next step; one of other buckets is dropped, and it starts from nothing.

        DDP must have rebuilt its buckets before (`workers.training.warm_up`).
        """
        self._recalled = memory

    def _take_up(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any], *, fits: bool) -> None:
        self._state.iter = values["steps"] if fits else 0
        held = self._held()
        for name, tensor in tensors.items() if fits else ():
            what, _, bucket = name.partition(".")
            held[what][int(bucket)] = tensor.to(self._device)

    def _held(self) -> dict[str, dict[int, Tensor]]:
        state = self._state
        return {"error": state.error_dict, "p": state.p_memory_dict, "q": state.q_memory_dict}


def power_sgd_bucket(
    state: PowerSgd,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    """The hook; DDP wants these two names."""
    return state.average(bucket)


def register_compression(compression: str, ddp: DistributedDataParallel) -> PowerSgd | None:
    """Hangs the hook of that name into the module; returns what has a memory."""
    if compression == "powersgd":
        memory = PowerSgd(ddp.module)
        ddp.register_comm_hook(memory, power_sgd_bucket)
        return memory
    ddp.register_comm_hook(None, default_hooks.fp16_compress_hook if compression == "fp16" else half_precision_bucket)
    return None
