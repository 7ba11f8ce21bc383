"""Seconds of one device's optimizer step by itself, as the probe timed it (`workers.estimate.step_times`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from core.config.batch import Batch
from core.records import Limits, Whole

Seconds = Annotated[float, Limits(0, 1e9)]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Real steps of a model on one device, which exchanged nothing.

    Attributes:
        threads: Processor threads that it had; 0 on a GPU, where they hardly matter.
        micro_batch: Samples of the micro-batch, as the run has it.
        pass_s: Its data, forward and backward pass; extended from smaller ones where these take seconds.
        update_s: Clipping and the optimizer's step.
        prepare_s: For each sample of a step, what the recipe makes before it (rollouts).
        steps: How many were timed.
        tokens_per_sample: 0 where the recipe has no tokens.
        power_w: Mean power of the GPU, by its energy counter; None without one.
    """

    threads: Whole
    micro_batch: Annotated[int, Limits(1)]
    pass_s: Annotated[float, Limits(1e-9, 1e9)]
    update_s: Seconds
    prepare_s: Seconds = 0.0
    steps: Whole = 0
    tokens_per_sample: Whole = 0
    power_w: Annotated[float, Limits(0, 1e6)] | None = None

    def step_s(self, batch: Batch, update_share: float = 1.0) -> float:
        """Seconds of a step of one rank's part of a batch, without exchange; it updates a share of the weights."""
        samples = batch.micro * batch.accumulation
        return self.samples_s(samples) + self.update_s * update_share

    def samples_s(self, samples: float) -> float:
        """Seconds of the passes over a number of samples, in micro-batches."""
        return samples * (self.pass_s / self.micro_batch + self.prepare_s)
