"""Fewer bytes for DDP's gradients over a process group: half precision on the wire, PowerSGD (`power_sgd`).

torch's own bfloat16 hook refuses anything but NCCL by its name, so there is one here. PowerSGD over gloo mixes up its
callbacks when there are several buckets (sizes differ between ranks, then a crash, in some runs): it gets one bucket.
"""

# No `from __future__ import annotations`: DDP compares the hooks' annotations with types, not with their names.

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from workers.all_reduce.power_sgd import PowerSgd, power_sgd_bucket

COMPRESSIONS = ("fp16", "bf16", "powersgd")


def half_precision_bucket(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """The mean over all ranks, sent and summed as bfloat16."""
    del state
    buffer = bucket.buffer()
    small = buffer.to(torch.bfloat16).div_(dist.get_world_size())
    sent = dist.all_reduce(small, async_op=True)
    assert sent is not None
    future: torch.futures.Future[Tensor] = sent.get_future().then(lambda done: buffer.copy_(done.value()[0]))
    return future


def ddp_options(compression: str, model_bytes: int) -> dict[str, Any]:
    """What `DistributedDataParallel` has to be made with."""
    if compression == "powersgd":
        return {"bucket_cap_mb": model_bytes // (1 << 20) + 64}
    return {}


def register_compression(compression: str, ddp: DistributedDataParallel) -> PowerSgd | None:
    """Hangs the hook of that name into the module; returns what has a memory."""
    if compression == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif compression == "bf16":
        ddp.register_comm_hook(None, half_precision_bucket)
    elif compression == "powersgd":
        memory = PowerSgd(ddp.module)
        ddp.register_comm_hook(memory, power_sgd_bucket)
        return memory
    else:
        raise ValueError(f"{compression!r} is none of {COMPRESSIONS}")
    return None
