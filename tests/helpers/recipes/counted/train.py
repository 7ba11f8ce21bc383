"""One weight a sample, which grows with each step that the sample is part of."""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch import Tensor, nn

from rankdeck.recipe import Optimization, PreparedData, Run, StepSamples, Task


class Counts(nn.Module):
    """Also counts its forward passes, in a buffer: what a skipped batch leaves there must go too."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(samples))
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, indices: Tensor, poison: Tensor) -> Tensor:
        """-1/n is each sample's gradient; the poison has none, so the loss alone shows it."""
        if self.training:
            self.passes += 1 + poison.sum()
        return -self.seen[indices].mean() + poison.mean()


def main(run: Run) -> None:
    """The learning rate is 1, so a weight times the batch is how often its sample was trained."""
    samples = run.options["samples"]
    bad = [int(number) for number in run.options["poisoned"].split(",") if number]
    run.prepare(lambda _: PreparedData(samples=samples, val_samples=0))

    def batch(indices: np.ndarray) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(indices), torch.from_numpy(np.where(np.isin(indices, bad), math.nan, 0.0)).float()

    step = 0

    def before_step(_: StepSamples) -> bool:
        nonlocal step
        step += 1
        time.sleep(0.02)  # a few steps are enough to write a checkpoint
        return True

    def loss(model: nn.Module, inputs: tuple[Tensor, Tensor]) -> Tensor:
        if run.rank == 1 and step >= run.options["short_from"] and len(inputs[0]) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. (injected)")
        return model(*inputs)

    run.fit(
        Task(
            model=Counts(samples),
            batch=batch,
            loss=loss,
            optimization=Optimization(kind=torch.optim.SGD),
            before_step=before_step,
        )
    )
