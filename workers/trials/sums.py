"""Times of sums over all ranks, by size and transport: gloo or NCCL, shared memory, and rounded to bf16 on the way."""

from __future__ import annotations

import time
from typing import Any, Final

import torch
import torch.distributed as dist

from workers.all_reduce.choice import GradientAllReduce, choose_all_reduce
from workers.strategies import RankPlace
from workers.strategies.process_group import make_process_group

SIZES: Final = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)
WANTED: Final = ("plain", "shared", "bf16")
MOST_ROUNDS: Final = 40
_WARM_UP: Final = 3
"""The third time that a tensor comes, shared memory sums it where it lies, as it does with DDP's buckets."""
_BURST: Final = 5


def time_sums(place: RankPlace, model_bytes: int, seconds: float) -> list[dict[str, Any]]:
    """Times sums for about `seconds`: all transports take turns, size by size, in an order that changes each round.

    Args:
        place: This rank's.
        model_bytes: Size of all gradients together, which is one of the sizes.
        seconds: Each transport has one round at least.

    Returns:
        `SumTimes` of each size and transport, as this rank saw them.
    """
    group = make_process_group(place)
    ways: dict[str, GradientAllReduce] = {}
    try:
        for wanted in WANTED:
            way = choose_all_reduce(group, place, model_bytes, wanted)
            if ways.setdefault(_name(way, place.backend), way) is not way:
                way.close()  # shared memory that cannot be used: gloo is among them already
        return _rounds(ways, group, place.device, model_bytes, seconds)
    finally:
        for way in ways.values():
            way.close()


def _rounds(
    ways: dict[str, GradientAllReduce],
    group: dist.ProcessGroup,
    device: torch.device,
    model_bytes: int,
    seconds: float,
) -> list[dict[str, Any]]:
    sizes = sorted({*SIZES, model_bytes})
    tensors = {size: torch.ones(max(1, size // 4), device=device) for size in sizes}
    times: dict[tuple[int, str], list[float]] = {(size, name): [] for size in sizes for name in ways}
    began = time.perf_counter()
    for number in range(MOST_ROUNDS):
        for size in sizes:
            order = list(ways.items())
            for name, way in order if number % 2 == 0 else reversed(order):
                times[size, name] += _burst(way, tensors[size], group)
        over = torch.tensor([int(time.perf_counter() - began > seconds)])
        dist.all_reduce(over, op=dist.ReduceOp.MAX, group=group)  # all ranks must make the same number
        if int(over):
            break
    return [
        {"transport": name, "size_bytes": size, "is_model": size == model_bytes, "times_s": found}
        for (size, name), found in times.items()
    ]


def _burst(way: GradientAllReduce, tensor: torch.Tensor, group: dist.ProcessGroup) -> list[float]:
    found = []
    for _ in range(_WARM_UP + _BURST):
        tensor.fill_(1.0)
        dist.barrier(group=group)
        began = time.perf_counter()
        way.reduce(tensor)
        if tensor.device.type == "cuda":
            torch.cuda.synchronize(tensor.device)
        found.append(time.perf_counter() - began)
    return found[_WARM_UP:]


def _name(way: GradientAllReduce, backend: str) -> str:
    base = "shared" if way.through_shared_memory else backend
    return f"{base} bf16" if way.name == "bf16" else base
