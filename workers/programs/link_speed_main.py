"""One rank of `rankdeck measure`: sums tensors over the devices for some seconds and prints how fast that went.

Run as ``python -m workers.programs.link_speed_main SECONDS`` with a rank's environment; it has no host. Its last line
is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Final

import torch
import torch.distributed as dist

from core.errors import RankdeckError
from core.protocol.rank_context import RankContext
from workers.all_reduce.choice import choose_all_reduce
from workers.programs.shard_speed import shard_speed
from workers.strategies import RankPlace
from workers.strategies.process_group import make_process_group

SMALL: Final = 16
LARGE: Final = 4 << 20
"""Numbers in the tensors, fp32: 64 bytes for the latency, and 16 MiB, the most that goes through at once
(`workers.strategies.outer_optimizer.BUCKET_ELEMENTS`)."""
_LATENCY_ROUNDS: Final = 30
_WARM_UP: Final = 3
_JOIN_LIMIT_S: Final = 30.0


def main(seconds: float) -> int:
    """Measures and prints; the exit code."""
    try:
        context = RankContext.from_env(os.environ)
        device = torch.device(context.device)
        torch.set_num_threads(context.threads)
        place = RankPlace(
            context.rank, context.world_size, device, context.backend, context.rendezvous, timeout_s=_JOIN_LIMIT_S
        )
        flags = make_process_group(place)
    except RankdeckError as error:
        sys.stdout.write(json.dumps({"cause": error.cause, "next_step": error.next_step}) + "\n")
        return 1
    # As `workers.strategies.local_sgd` exchanges weights.
    wire = device if place.backend == "nccl" else torch.device("cpu")
    latency_s = _median(_times(torch.ones(SMALL, device=wire), flags, 60.0, _LATENCY_ROUNDS))
    times = _times(torch.ones(LARGE, device=wire), flags, seconds, sys.maxsize)
    rate = LARGE * 4 / 1e6 / max(1e-9, _median(times) - latency_s)
    # As DDP sums gradients.
    way = choose_all_reduce(flags, place, LARGE * 4)
    shared = way.speeds.shared_mb_per_s if way.through_shared_memory and way.speeds is not None else None
    way.close()
    found: dict[str, float | None] = {"mb_per_s": rate, "latency_s": latency_s, "rounds": len(times)}
    found |= {"shared_mb_per_s": shared, **shard_speed(device)}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    dist.barrier(group=flags)
    return 0


def _times(tensor: torch.Tensor, flags: dist.ProcessGroup, limit_s: float, limit: int) -> list[float]:
    """Seconds of each all-reduce, until the time is over on any rank."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < limit + _WARM_UP:
        start = time.perf_counter()
        dist.all_reduce(tensor)
        if tensor.device.type == "cuda":
            torch.cuda.synchronize(tensor.device)
        times.append(time.perf_counter() - start)
        tensor.fill_(1.0)
        over = torch.tensor([int(time.perf_counter() - began > limit_s and len(times) > _WARM_UP)])
        dist.all_reduce(over, op=dist.ReduceOp.MAX, group=flags)  # all ranks must make the same number
        if int(over):
            break
    return times[_WARM_UP:]


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    code = main(float(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # as `workers.programs.rank_main` does: taking torch apart lasts a second
