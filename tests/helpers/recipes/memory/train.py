"""A small network with dropout, on a rank that has memory for small micro-batches only."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankdeck.recipe import Optimization, PreparedData, Run, StepSamples, Task

SAMPLES = 640
MIB = 1 << 20


class Fails(torch.autograd.Function):
    """Passes a tensor on, and has no memory for its gradient."""

    @staticmethod
    def forward(_: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_: Any, __: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB (injected)")


class Running(nn.Module):
    """Takes a running mean, a buffer, from what comes in."""

    mean: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, value: Tensor) -> Tensor:
        if self.training:
            self.mean.lerp_(value.detach().mean(0), 0.1)
        return value - self.mean.clone()


def take(size: int) -> Tensor:
    """`size` samples' worth of memory, under a limit that the system enforces."""
    import resource

    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + 6 * 64 * MIB, before[1]))
    try:
        return torch.zeros(size, 64 * MIB // 4)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main(run: Run) -> None:
    """The step is counted in `before_step`, which a step that is done again does not call again."""
    o = run.options
    run.prepare(lambda _: PreparedData(samples=SAMPLES, val_samples=0))
    start = run._session.start
    step = [0 if start is None else start.step]

    def before_step(_: StepSamples) -> bool:
        step[0] += 1
        time.sleep(0.02)  # a few steps are enough to write a checkpoint
        return True

    def is_short(size: int) -> bool:
        return run.rank == o["short_rank"] and step[0] >= o["short_from"] and size > o["most"]

    class Short(torch.optim.AdamW):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            if o["where"] == "update" and is_short(run._session.batch.micro):
                raise torch.OutOfMemoryError("CUDA out of memory. (injected)")
            return super().step(closure)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        y = model(x)
        short = torch.is_grad_enabled() and is_short(len(x))
        if short and o["where"] == "forward":
            raise torch.OutOfMemoryError("CUDA out of memory. (injected)")
        if short and o["where"] == "limit":
            take(len(x))
        if short and o["where"] == "backward":
            y = Fails.apply(y)
        return (y - x.sum(1, keepdim=True)).square().mean()

    def batch(indices: np.ndarray) -> Tensor:
        return torch.from_numpy(np.sin(np.outer(indices + 1, np.arange(1, 9)))).float()

    norm = [Running(16)] if o["buffers"] else []
    run.fit(
        Task(
            model=nn.Sequential(nn.Linear(8, 16), *norm, nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 1)),
            batch=batch,
            loss=loss,
            optimization=Optimization(kind=Short, clip_norm=1.0),
            before_step=before_step,
        )
    )
