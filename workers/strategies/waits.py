"""Waits for other ranks, timed where they happen: inside the collectives of a mode.

A rank waits where a collective needs what another rank does not have yet. From outside only the whole step is seen, and
that takes equally long on all ranks. What is timed includes the transfer, which is alike on all ranks, so the host
takes the shortest wait of a step off again (`core.host.watches.straggler`). Clocks of ranks are never compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule  # SymPy and 600 modules with it, which only modes that shard need


class BufferWait:
    """Times how long DDP waits for the first rank's buffers before a forward pass, on CPU devices.

    Args:
        ddp: It sends the buffers between its own forward hooks and those of the model in it.
    """

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._began: float | None = None
        self._waited_s = 0.0
        ddp.register_forward_pre_hook(self._begin)
        ddp.module.register_forward_pre_hook(self._end)

    def take(self) -> float:
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s

    def _begin(self, _module: nn.Module, _inputs: Sequence[Any]) -> None:
        self._began = time.perf_counter()

    def _end(self, _module: nn.Module, _inputs: Sequence[Any]) -> None:
        if self._began is not None:  # None: the model is called by itself, in an evaluation
            self._waited_s += time.perf_counter() - self._began
            self._began = None


class ShardWait:
    """Times FSDP's collectives on CPU devices, where each one is waited for; a context of what counts.

    PyTorch before 2.9 cannot be asked to let others make its collectives; then nothing is measured.

    Args:
        modules: Those that FSDP gathers one at a time.
    """

    def __init__(self, modules: Iterable[FSDPModule]) -> None:
        self._waited_s: float | None = None
        self._counts = False
        gather, scatter = _Gather(self), _Scatter(self)
        for module in modules:
            if hasattr(module, "set_custom_all_gather") and hasattr(module, "set_custom_reduce_scatter"):
                made: Any = module
                made.set_custom_all_gather(gather)
                made.set_custom_reduce_scatter(scatter)
                self._waited_s = 0.0

    def __enter__(self) -> None:
        self._counts = True

    def __exit__(self, *_: object) -> None:
        self._counts = False

    def take(self) -> float | None:
        """Seconds since the last call; None where they cannot be measured."""
        waited_s = self._waited_s
        if waited_s is not None:
            self._waited_s = 0.0
        return waited_s

    def add(self, began: float) -> None:
        """A collective that began then is over."""
        if self._counts and self._waited_s is not None:
            self._waited_s += time.perf_counter() - began


class _Timed:
    """One of FSDP's collectives, as FSDP makes it."""

    def __init__(self, waits: ShardWait) -> None:
        self._waits = waits

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class _Gather(_Timed):
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, async_op: bool = False
    ) -> dist.Work | None:
        began = time.perf_counter()
        gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # renamed in 2.13
        work: dist.Work | None = gather(output_tensor, input_tensor, group=group, async_op=async_op)
        self._waits.add(began)
        return work


class _Scatter(_Timed):
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, op: Any, async_op: bool = False
    ) -> dist.Work | None:
        began = time.perf_counter()
        scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor  # renamed in 2.13
        work: dist.Work | None = scatter(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        self._waits.add(began)
        return work
