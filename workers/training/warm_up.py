"""Warm-up passes before the first step, which leave no trace in weights, optimizer, generators or statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from workers.optim import seeding
from workers.optim.precision import Precision
from workers.strategies import Replica
from workers.training.batches import GroupBatches
from workers.training.evaluation import to_device
from workers.training.task import LossAndMetrics, Task


class WarmUp:
    """Makes passes over the first samples of the dataset.

    Args:
        task: What is trained.
        replica: The model as this rank trains it.
        precision: The forward pass's format.
        batches: Knows the order of samples, and the micro-batch.
        samples: Training samples there are.
        device: What this rank trains on.
    """

    def __init__(
        self,
        task: Task,
        replica: Replica,
        precision: Precision,
        batches: GroupBatches,
        samples: int,
        device: torch.device,
    ) -> None:
        self._task = task
        self._replica = replica
        self._precision = precision
        self._batches = batches
        self._samples = samples
        self._device = device

    def run(self) -> None:
        """A forward and backward pass, or two, that leave no trace but DDP's final order of buckets.

        DDP rebuilds its buckets after its first passes. A resumed run has these where the run it continues had none;
        with more than two ranks gloo would then add the same numbers in another order, and what PowerSGD remembers
        would be of other buckets. Memory that does not suffice and connections that do not work also show here.
        """
        with self.without_trace():
            for _ in range(self._replica.passes_to_settle):
                self._pass(1)

    def pass_alone(self) -> None:
        """A whole micro-batch without all-reduce; inside `without_trace`."""
        with self._replica.micro_batch(last=False):
            self._pass(self._batches.micro_batch)

    @contextmanager
    def without_trace(self) -> Iterator[None]:
        """Passes in it move no generator and leave no statistics in the model's buffers."""
        buffers = [(buffer, buffer.clone()) for buffer in self._replica.model.buffers()]
        with seeding.untouched(self._device):
            yield
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)

    def _pass(self, samples: int) -> None:
        indices = np.resize(self._batches.plan.order(0, 0, 0, 0, min(samples, self._samples)), samples)
        with self._precision.forward():
            returned = self._task.loss(self._replica.module, to_device(self._task.batch(indices), self._device))
        self._replica.warm_up(LossAndMetrics.of(returned).loss)
