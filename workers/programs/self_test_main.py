"""One rank of a self-test (`core.doctor.self_tests`): computes on its device, or exchanges tensors with another rank.

Run as ``python -m workers.programs.self_test_main compute`` or ``… link`` with a rank's environment; it has no host.
Each part prints two lines of JSON, at its beginning and at its end: so a killed process has said what it was doing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from core.errors import RankdeckError
from core.protocol.rank_context import RankContext

# Rows and columns of the matrices: sums of 256 numbers -1, 0 and 1 are exact in bf16 and fp16.
EXACT_SIZE: Final = 256
# Numbers in the larger tensor, fp32: 16 MiB, as `workers.programs.measure_main` measures.
LINK_ELEMENTS: Final = 4 << 20
JOIN_LIMIT_S: Final = 30.0


def try_part(name: str, work: Callable[[], object]) -> bool:
    """Do one part of a test and print its result; an error is a result."""
    _say({"begins": name})
    found: dict[str, Any] = {"ok": True}
    try:
        work()
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

    def matmul(dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)
        left, right = (
            torch.randint(-1, 2, (EXACT_SIZE, EXACT_SIZE), generator=generator).to(device, torch.float32)
            for _ in range(2)
        )
        if not torch.equal((left.to(dtype) @ right.to(dtype)).float(), left @ right):
            raise ArithmeticError("a matmul computed wrong numbers")

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

    def join() -> None:
        groups.append(make_process_group(place))

    def gather() -> None:
        ranks = context.world_size
        for count in (1000, LINK_ELEMENTS):
            numbers = torch.arange(count, device=wire).remainder(1000).float()
            expected = numbers * ranks + sum(range(ranks))
            numbers += context.rank
            dist.all_reduce(numbers)
            if not torch.equal(numbers, expected):
                raise ArithmeticError("the devices summed to wrong numbers")

    if try_part("join", join) and try_part("sum", gather):
        dist.barrier(group=groups[0])


def _say(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    """Run one test; the exit code is 0 however its parts ended."""
    context = RankContext.from_env(os.environ)
    if try_part("import", lambda: import_module("torch")):
        if argv[0] == "compute":
            compute(context)
        else:
            link(context)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # As `workers.programs.rank_main` does: taking torch apart lasts a second.
    os._exit(code)
