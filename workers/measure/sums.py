"""Times of sums over all ranks, by size and transport: gloo or NCCL, and shared memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import Tensor

from workers.all_reduce.choice import GradientAllReduce, choose_all_reduce
from workers.strategies import RankPlace
from workers.strategies.process_group import make_process_group

SIZES: Final = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)
WANTED: Final = ("plain", "shared")
MOST_ROUNDS: Final = 40
# The third time that a tensor comes, shared memory sums it where it lies, as it does with DDP's buckets.
_WARM_UP: Final = 3
_BURST: Final = 5

# Seconds of sums, by size in bytes and transport.
Times = dict[tuple[int, str], list[float]]


def time_transports(place: RankPlace, model_bytes: int, seconds: float) -> list[dict[str, Any]]:
    """Measure `SumTimes` of each size and transport, for about `seconds`.

    `model_bytes`, the size of all gradients together, is one of the sizes.
    """
    group = make_process_group(place)
    ways: dict[str, GradientAllReduce] = {}
    try:
        for wanted in WANTED:
            way = choose_all_reduce(group, place, wanted)
            if ways.setdefault(way.name, way) is not way:
                # Shared memory that cannot be used: gloo is among them already.
                way.close()
        reduces = {name: way.reduce for name, way in ways.items()}
        times = time_sums(reduces, group, place.device, sorted({*SIZES, model_bytes}), seconds)
    finally:
        for way in ways.values():
            way.close()
    return [
        {"transport": name, "size_bytes": size, "is_model": size == model_bytes, "times_s": found}
        for (size, name), found in times.items()
    ]


def time_sums(
    reduces: Mapping[str, Callable[[Tensor], object]],
    group: dist.ProcessGroup,
    device: torch.device,
    sizes: Sequence[int],
    seconds: float,
) -> Times:
    """Time sums for about `seconds`: all transports take turns, size by size, in an order that changes each round.

    Args:
        reduces: Sums a tensor over the ranks, by transport.
        group: Of all ranks, for flags.
        device: Of the tensors.
        sizes: In bytes.
        seconds: Each transport has one round at least.
    """
    tensors = {size: torch.ones(max(1, size // 4), device=device) for size in sizes}
    times: Times = {(size, name): [] for size in sizes for name in reduces}
    began = time.perf_counter()
    for number in range(MOST_ROUNDS):
        for size in sizes:
            order = list(reduces.items())
            for name, reduce in order if number % 2 == 0 else reversed(order):
                times[size, name] += _burst(reduce, tensors[size], group)
        over = torch.tensor([int(time.perf_counter() - began > seconds)])
        dist.all_reduce(over, op=dist.ReduceOp.MAX, group=group)  # all ranks must make the same number
        if int(over):
            break
    return times


def _burst(reduce: Callable[[Tensor], object], tensor: Tensor, group: dist.ProcessGroup) -> list[float]:
    found = []
    for _ in range(_WARM_UP + _BURST):
        tensor.fill_(1.0)
        dist.barrier(group=group)
        began = time.perf_counter()
        reduce(tensor)
        if tensor.device.type == "cuda":
            torch.cuda.synchronize(tensor.device)
        found.append(time.perf_counter() - began)
    return found[_WARM_UP:]
