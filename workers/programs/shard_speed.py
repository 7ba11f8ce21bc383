"""Times what PyTorch's sharding costs between devices: gathers and shared sums with all copies, in real passes."""

from __future__ import annotations

import statistics
import time
from typing import Final

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

PARTS: Final = 4
LARGE: Final = 1024
SMALL: Final = 64
"""Widths: parts of 4 MiB and of 16 KiB."""
_STEPS: Final = 6
_WARM_UP: Final = 2
_COLLECTIVES: Final = 3 * PARTS
"""Of a step of stage 3: each part is gathered twice and summed once (`core.estimate.traffic`)."""


def shard_speed(device: torch.device) -> dict[str, float]:
    """The values of `core.probes.sync_cost.Link` about sharding; every rank of the default group calls it.

    Weights are gathered for both passes and gradients shared out, as in stage 3, by a model that computes next to
    nothing. What it computes is timed by itself and taken off.
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
