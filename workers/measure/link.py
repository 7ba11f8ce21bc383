"""Speed of the link between devices: sums of tensors, and real passes of PyTorch's sharding."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from workers.all_reduce.choice import choose_all_reduce
from workers.measure.sums import time_sums
from workers.strategies import RankPlace
from workers.strategies.process_group import make_process_group

# Bytes: 64 for the latency, and 16 MiB, the most that goes through at once
# (`workers.strategies.outer_optimizer.BUCKET_ELEMENTS`).
SMALL_BYTES: Final = 64
LARGE_BYTES: Final = 16 << 20
PARTS: Final = 4
# Widths: parts of 4 MiB and of 16 KiB.
LARGE: Final = 1024
SMALL: Final = 64
_STEPS: Final = 6
_WARM_UP: Final = 2
# Of a step of stage 3: each part is gathered twice and summed once (`core.measure.estimate.speed.step_traffic`).
_COLLECTIVES: Final = 3 * PARTS


def measure_link(place: RankPlace, seconds: float) -> dict[str, Any]:
    """Measure the values of `core.measure.link.Link`; every rank of the group calls it."""
    flags = make_process_group(place)
    # As `workers.strategies.local_sgd` exchanges weights.
    wire = place.device if place.backend == "nccl" else torch.device("cpu")
    times = time_sums({place.backend: dist.all_reduce}, flags, wire, (SMALL_BYTES, LARGE_BYTES), seconds)
    latency_s, large_s = (statistics.median(times[size, place.backend]) for size in (SMALL_BYTES, LARGE_BYTES))
    # As DDP sums gradients.
    way, shared = choose_all_reduce(flags, place), None
    if way.through_shared_memory:
        times = time_sums({way.name: way.reduce}, flags, place.device, (LARGE_BYTES,), seconds / 2)
        shared = LARGE_BYTES / 1e6 / statistics.median(times[LARGE_BYTES, way.name])
    way.close()
    sharded = shard_speed(place.device)
    dist.barrier(group=flags)
    rate = LARGE_BYTES / 1e6 / max(1e-9, large_s - latency_s)
    found = {"mb_per_s": rate, "latency_s": latency_s, "ranks": place.world_size, "backend": place.backend}
    return {**found, "shared_mb_per_s": shared, **sharded}


def shard_speed(device: torch.device) -> dict[str, float]:
    """Measure the values of `Link` about sharding; every rank of the default group calls it.

    Weights are gathered for both passes and gradients shared out, as in stage 3, by a model that computes next to
    nothing. Its computing is timed by itself and taken off.
    """
    large_s, small_s = (_step_s(width, device, shards=True) for width in (LARGE, SMALL))
    computing_s = _step_s(LARGE, device, shards=False) - _step_s(SMALL, device, shards=False)
    weights = PARTS * LARGE * LARGE * 4
    moving_s = max(1e-6, large_s - small_s - max(0.0, computing_s))
    return {"sharded_mb_per_s": 2 * weights / 1e6 / moving_s, "sharded_latency_s": small_s / _COLLECTIVES}


def _step_s(width: int, device: torch.device, *, shards: bool) -> float:
    model = nn.Sequential(*(nn.Linear(width, width, bias=False, device=device) for _ in range(PARTS)))
    if shards:
        assert dist.group.WORLD is not None
        mesh = DeviceMesh.from_group(dist.group.WORLD, device.type)
        for part in model:
            fully_shard(part, mesh=mesh, reshard_after_forward=True)
        fully_shard(model, mesh=mesh, reshard_after_forward=False)
    inputs, times = torch.ones(1, width, device=device), list[float]()
    for _ in range(_WARM_UP + _STEPS):
        began = time.perf_counter()
        model(inputs).sum().backward()
        model.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[_WARM_UP:])
