"""One rank of a self-test (`core.doctor.self_tests`): computes on its device, or exchanges tensors with another rank.

Run as ``python -m workers.programs.self_test_main compute`` or ``… link`` with a rank's environment; it has no host.
Each part prints two lines of JSON, at its beginning and at its end: so a killed process has said what it was doing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from core.errors import RankdeckError
from core.protocol.rank_context import RankContext

CPU_SIZE: Final = 512
# Rows and columns of the matrices that are timed.
GPU_SIZE: Final = 4096
# Of the matrices that are checked: sums of 256 numbers -1, 0 and 1 are exact in bf16 and fp16.
EXACT_SIZE: Final = 256
# Numbers in the tensors, fp32: 16 MiB, as `workers.programs.measure_main` measures.
LINK_ELEMENTS: Final = 4 << 20
SECONDS: Final = 1.0
JOIN_LIMIT_S: Final = 30.0
Found = dict[str, Any]


def try_part(name: str, work: Callable[[], Found]) -> bool:
    """Do one part of a test and print its result; an error is a result."""
    _say({"begins": name})
    try:
        found: Found = {"ok": True, **work()}
    except RankdeckError as error:
        found = {"ok": False, "cause": error.cause}
    except Exception as error:  # torch raises whatever the driver and its libraries say
        text = " ".join(str(error).split())
        found = {"ok": False, "cause": f"{type(error).__name__}: {text[:400]}"}
    _say({"part": name, **found})
    return bool(found["ok"])


def compute(context: RankContext) -> None:
    """Multiply matrices in fp32 and both half precisions on this rank's device."""
    import torch

    torch.set_num_threads(context.threads)
    device = torch.device(context.device)

    def matmul(dtype: torch.dtype) -> Found:
        generator = torch.Generator().manual_seed(0)
        left, right = (
            torch.randint(-1, 2, (EXACT_SIZE, EXACT_SIZE), generator=generator).to(device, torch.float32)
            for _ in range(2)
        )
        if not torch.equal((left.to(dtype) @ right.to(dtype)).float(), left @ right):
            raise ArithmeticError("a matmul computed wrong numbers")
        size = GPU_SIZE if device.type == "cuda" else CPU_SIZE
        matrix = torch.ones((size, size), device=device, dtype=dtype)
        seconds = _time(lambda: matrix @ matrix, device)
        return {"gflops": 2 * size**3 / seconds / 1e9}

    if try_part("fp32", lambda: matmul(torch.float32)):
        try_part("bf16", lambda: matmul(torch.bfloat16))
        try_part("fp16", lambda: matmul(torch.float16))


def link(context: RankContext) -> None:
    """Sum tensors with the other ranks, and check the sums."""
    import torch
    import torch.distributed as dist

    from workers.strategies import RankPlace
    from workers.strategies.process_group import make_process_group

    torch.set_num_threads(context.threads)
    device = torch.device(context.device)
    place = RankPlace(
        context.rank, context.world_size, device, context.backend, context.rendezvous, timeout_s=JOIN_LIMIT_S
    )
    wire = device if context.backend == "nccl" else torch.device("cpu")
    groups: list[dist.ProcessGroup] = []

    def join() -> Found:
        groups.append(make_process_group(place))
        return {}

    def gather() -> Found:
        numbers = torch.arange(1000, dtype=torch.float32, device=wire) + context.rank
        dist.all_reduce(numbers)
        ranks = context.world_size
        expected = torch.arange(1000, dtype=torch.float32, device=wire) * ranks + sum(range(ranks))
        if not torch.equal(numbers, expected):
            raise ArithmeticError("the devices summed to wrong numbers")
        tensor, times, began = torch.ones(LINK_ELEMENTS, device=wire), [], time.perf_counter()
        for _ in range(2):
            dist.all_reduce(tensor)
        while True:
            tensor.fill_(1.0)
            times.append(_time_once(lambda: dist.all_reduce(tensor), wire))
            over = torch.tensor([int(time.perf_counter() - began > SECONDS)])
            dist.all_reduce(over, op=dist.ReduceOp.MAX, group=groups[0])
            if int(over):
                return {"mb_per_s": LINK_ELEMENTS * 4 / 1e6 / sorted(times)[len(times) // 2]}

    if try_part("join", join) and try_part("sum", gather):
        dist.barrier(group=groups[0])


def _time(work: Callable[[], object], device: Any) -> float:
    """The median round in seconds; rounds continue for a quarter of a second."""
    times = [_time_once(work, device)]  # the first is the warm-up
    began = time.perf_counter()
    while len(times) < 4 or (time.perf_counter() - began < 0.25 and len(times) < 50):
        times.append(_time_once(work, device))
    return max(1e-9, sorted(times[1:])[len(times[1:]) // 2])


def _time_once(work: Callable[[], object], device: Any) -> float:
    import torch

    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return max(1e-9, time.perf_counter() - began)


def _say(values: Found) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    """Run one test; the exit code is 0 however its parts ended."""
    context = RankContext.from_env(os.environ)
    if try_part("import", _import_torch):
        if argv[0] == "compute":
            compute(context)
        else:
            link(context)
    return 0


def _import_torch() -> Found:
    import torch

    return {"torch": torch.__version__}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # as `workers.programs.rank_main` does: taking torch apart lasts a second
