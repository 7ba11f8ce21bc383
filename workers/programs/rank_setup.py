"""Set-up of a rank's process: PyTorch's imports, threads and GPU, and its place among the others.

torch is imported when it is called: a rank first says that it is there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from core.config.distributed import DistributedConfig
from core.protocol.rank_context import RankContext

if TYPE_CHECKING:
    from workers.strategies import RankPlace


def set_up_torch() -> None:
    """Import what every rank needs of PyTorch and set its threads; use no GPU yet."""
    import torch

    # The first optimizer imports torch's compiler: most of a second, better now.
    torch.optim.SGD([torch.zeros(1)])
    threads = os.environ.get("OMP_NUM_THREADS")
    # "4,2" is for nested regions, which torch does not have.
    if threads and threads.isdecimal():
        torch.set_num_threads(int(threads))


def set_up_gpu(context: RankContext) -> None:
    if context.on_cpu:
        return
    import torch

    torch.cuda.set_device(torch.device(context.device))
    torch.set_float32_matmul_precision("high")  # TF32 for what stays fp32
    torch.backends.cudnn.allow_tf32 = True


def rank_place(context: RankContext, **changes: Any) -> RankPlace:
    """This rank among the others; `changes` are fields of `RankPlace` that differ from its environment."""
    import torch

    from workers.strategies import RankPlace

    distributed = DistributedConfig.from_env(os.environ)
    given: dict[str, Any] = {
        "rank": context.rank,
        "world_size": context.world_size,
        "device": torch.device(context.device),
        "backend": context.backend,
        "rendezvous": context.rendezvous,
        "timeout_s": distributed.timeout_s,
        "nodes": distributed.num_nodes,
        "nic": distributed.nic,
    }
    return RankPlace(**{**given, **changes})
