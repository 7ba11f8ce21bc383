"""A small network with which a large micro-batch fails on one rank, in the way that a test wants."""

from __future__ import annotations

import os
import time

import numpy as np
import torch
from torch import Tensor, nn

from rankdeck.recipe import PreparedData, Run, Task


def main(run: Run) -> None:
    """A pass takes a fixed time beside its arithmetic, so that larger micro-batches are faster."""
    o = run.options
    run.prepare(lambda _: PreparedData(samples=640))

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        if o["what"] and run.rank == o["bad_rank"] and len(x) > o["most"]:
            fail(o["what"])
        time.sleep(0.02)
        return (model(x) - x.sum(1, keepdim=True)).square().mean()

    def batch(indices: np.ndarray) -> Tensor:
        return torch.from_numpy(np.sin(np.outer(indices + 1, np.arange(1, 9)))).float()

    run.fit(Task(model=nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), batch=batch, loss=loss))


def fail(what: str) -> None:
    if what == "memory":
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB (injected)")
    if what == "kill":
        os.kill(os.getpid(), 9)
    if what == "hang":
        time.sleep(600)
    raise ValueError("this recipe cannot")
