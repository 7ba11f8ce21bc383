"""Gloo against shared memory, at start-up, with tensors as large as the model's gradients: right first, then fast.

All ranks run the same collectives in the same order, whatever goes wrong in one of them: what fails is only noted, and
the notes are summed, so that all ranks come to the same end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
import torch.distributed as dist
from torch import Tensor

from core.errors import RankdeckError

FIRST_BYTES: Final = 1 << 20
# DDP's buckets are not larger, so nothing larger is ever sent at once.
LARGEST_BYTES: Final = 25 << 20
BUDGET_S: Final = 0.2
MOST_ROUNDS: Final = 5
# The first touches new memory, and with the second tensors are shared where they lie.
WARM_UP_ROUNDS: Final = 2

# Replaces a tensor by its sum over the ranks.
Sum = Callable[[Tensor], None]


@dataclass(frozen=True, slots=True)
class Speeds:
    """Gradients summed per second, in bytes of one rank.

    Attributes:
        gloo_mb_per_s, shared_mb_per_s: 10⁶ bytes a second.
        size_bytes: The tensor that it was measured with.
    """

    gloo_mb_per_s: float
    shared_mb_per_s: float
    size_bytes: int


def run_timing_test(
    group: dist.ProcessGroup, rank: int, device: torch.device, model_bytes: int, gloo: Sum, shared: Sum
) -> Speeds | str:
    """Checks and times; every rank of the group has to call it.

    Args:
        group: For agreeing, over the CPU.
        rank: This rank's place in it.
        device: Where the gradients are.
        model_bytes: Size of all gradients together.
        gloo: The sum as DDP would take it without shared memory.
        shared: The sum through shared memory; where it raises, it has told the other ranks.

    Returns:
        The speeds, the same on all ranks; or why shared memory does not work, as far as this rank knows.
    """
    problem = _check(group, rank, device, gloo, shared)
    if not _agreed(group, int(not problem)):
        return problem or "it failed on another rank"
    larger = min(LARGEST_BYTES, max(4, model_bytes))
    size = min(FIRST_BYTES, larger)
    times = _time(group, device, size, 1, gloo, shared)
    if times is not None:
        predicted_s = sum(times) * larger / size
        if _agreed(group, int(predicted_s <= BUDGET_S)):
            size = larger
        else:
            predicted_s = sum(times)
        rounds = _agreed(group, int(min(MOST_ROUNDS, max(1.0, BUDGET_S / predicted_s))))
        times = _time(group, device, size, rounds, gloo, shared)
    if times is None:
        return "it failed while it was timed"
    gloo_s, shared_s = times
    return Speeds(size / gloo_s / 1e6, size / shared_s / 1e6, size)


def _check(group: dist.ProcessGroup, rank: int, device: torch.device, gloo: Sum, shared: Sum) -> str:
    """Sums of small whole numbers are exact in any order, in bfloat16 too: both ways have to give the same bits."""
    problem, broken = "", False
    for count in (1, 1000, 100_003):
        numbers = torch.arange(count, dtype=torch.float32).remainder_(19.0).add_(float(rank + 1))
        expected, got = numbers.to(device, copy=True), numbers.to(device, copy=True)
        gloo(expected)
        for _ in range(WARM_UP_ROUNDS + 1):
            got.copy_(numbers)
            try:
                if not broken:
                    shared(got)
                    problem = problem or ("" if torch.equal(expected, got) else "its sums differ from gloo's")
            except Exception as error:
                cause = error.cause if isinstance(error, RankdeckError) else f"{type(error).__name__}: {error}"
                problem, broken = cause.rstrip("."), True
            dist.barrier(group=group)
    return problem


def _time(
    group: dist.ProcessGroup, device: torch.device, size_bytes: int, rounds: int, gloo: Sum, shared: Sum
) -> tuple[float, float] | None:
    """Seconds of the best round of each, averaged over the ranks; None when shared memory failed on any."""
    tensor = torch.zeros(size_bytes // 4, dtype=torch.float32, device=device)
    best = [float("inf"), float("inf")]
    well = True
    for number in range(WARM_UP_ROUNDS + rounds):
        for place, way in enumerate((gloo, shared)):
            dist.barrier(group=group)
            began = time.perf_counter()
            if place == 0 or well:
                try:
                    way(tensor)
                    if device.type == "cuda":
                        torch.cuda.synchronize(device)
                except Exception:
                    if place == 0:
                        raise
                    well = False
            if number >= WARM_UP_ROUNDS:
                best[place] = min(best[place], time.perf_counter() - began)
    sums = torch.tensor([*best, float(not well)], dtype=torch.float64)
    dist.all_reduce(sums, group=group)
    gloo_s, shared_s, failed = (value / dist.get_world_size(group) for value in sums.tolist())
    return None if failed else (gloo_s, shared_s)


def _agreed(group: dist.ProcessGroup, number: int) -> int:
    """The smallest of all ranks'."""
    numbers = torch.tensor([number], dtype=torch.int64)
    dist.all_reduce(numbers, op=dist.ReduceOp.MIN, group=group)
    return int(numbers.item())
