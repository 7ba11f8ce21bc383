"""Warm-up passes before the first step, which leave no trace in weights, optimizer, generators or statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from core.protocol.messages import COMPILING
from workers.training.evaluation import to_device
from workers.training.setup import TrainingSetup
from workers.training.step_start import StepStart
from workers.training.task import LossAndMetrics


class WarmUp:
    def __init__(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self._replica = setup.replica

    def run(self) -> None:
        """A forward and backward pass without side effects but for DDP's final order of buckets.

        DDP rebuilds its buckets after its first pass. A resumed run has these where the run it continues had none;
        with more than two ranks gloo would then add the same numbers in another order. A lack of memory and broken
        connections also show here. A model is compiled here, too, for whole micro-batches.
        """
        setup = self._setup
        compiles = setup.session.config.torch_compile
        if compiles:
            setup.session.phase(COMPILING)
        with self.without_trace():
            self._pass(setup.batches.micro_batch if compiles else 1)

    def pass_alone(self) -> None:
        with self._replica.micro_batch(last=False):
            self._pass(self._setup.batches.micro_batch)

    @contextmanager
    def without_trace(self) -> Iterator[None]:
        """Passes in it move no generator and leave no statistics in the model's buffers."""
        start = StepStart(self._replica.model, self._setup.device)
        yield
        start.restore()

    def _pass(self, samples: int) -> None:
        setup, plan = self._setup, self._setup.batches.plan
        indices = np.resize(plan.order(0, 0, 0, 0, min(samples, plan.samples)), samples)
        with setup.training_pass(samples):
            with setup.precision.forward():
                returned = setup.task.loss(self._replica.module, to_device(setup.task.batch(indices), setup.device))
            self._replica.warm_up(LossAndMetrics.of(returned).loss)
