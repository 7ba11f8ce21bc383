"""Step reports: one metrics line a step, and the end of a run in which every step overflows fp16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from core.errors import RankdeckError
from workers.host_link.peak_memory import LOOK_EVERY, PeakMemoryReport
from workers.training.batches import StepBatch
from workers.training.setup import TrainingSetup

_LOOK_EVERY: Final = 10
# Steps in which memory grows most: the first makes the optimizer's state, the next comes on top of it.
_SETTLING: Final = 3
_HOPELESS_AFTER: Final = 50


class OverflowingError(RankdeckError):
    """fp16 has overflowed in every step for long."""

    title = "Every gradient overflows fp16"


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step that is done.

    Attributes:
        metrics: Means over this rank's share by name, tensors without dimensions; none when the share was empty.
        grad_norm: Before clipping, a tensor without dimensions.
        time_s: Since the boundary before, with the waits for other ranks.
        data_wait_s: For the host's next chunk, and for the recipe to make the batch.
        sync: Costs of synchronising with other ranks, by metric name.
    """

    number: int
    batch: StepBatch
    metrics: Mapping[str, Tensor]
    lr: float
    grad_norm: Tensor
    time_s: float
    data_wait_s: float
    sync: Mapping[str, float | None]

    @property
    def loss(self) -> Tensor | None:
        return self.metrics.get("loss")


class Overflows:
    """Counts overflows in a row on the device, and reads the count every ten steps, since a GPU has to be waited for.

    Raises `OverflowingError` after 50.
    """

    def __init__(self, device: torch.device) -> None:
        self._in_a_row = torch.zeros((), dtype=torch.int64, device=device)

    def note(self, step: int, norm: Tensor) -> None:
        self._in_a_row = torch.where(torch.isfinite(norm), 0, self._in_a_row + 1)
        if step % _LOOK_EVERY == 0 and int(self._in_a_row) >= _HOPELESS_AFTER:
            raise OverflowingError(
                f"Up to step {step} every gradient for at least 50 steps overflowed fp16 and was skipped.",
                "Choose precision bf16 or fp32, or lower the learning rate, and resume.",
            )


class StepReports:
    """Reports steps and finished chunks."""

    def __init__(self, setup: TrainingSetup) -> None:
        self._session = setup.session
        self._batches = setup.batches
        self._precision = setup.precision
        self._tokens = setup.task.tokens_per_sample
        self._device = setup.device
        self._peak_memory = PeakMemoryReport(setup.session.reporter, setup.device)
        self._overflows = Overflows(setup.device) if setup.precision.scaler.is_enabled() else None

    def step(self, step: Step) -> None:
        """Report a step; raise `OverflowingError` where every gradient has overflowed for too long."""
        batch, time_s = step.batch, step.time_s
        if self._device.type == "cuda" and step.number == self._session.first_step:
            # Else the first steps' times are those of queueing only.
            torch.cuda.synchronize(self._device)
        self._session.reporter.log(
            step.number,
            **step.metrics,
            lr=step.lr,
            grad_norm=step.grad_norm,
            loss_scale=self._precision.loss_scale(),
            tokens_per_s=batch.samples * self._tokens / time_s,
            samples_per_s=batch.samples / time_s,
            step_time_s=time_s,
            data_wait_s=step.data_wait_s,
            **step.sync,
            device_mem_bytes=self._device_memory(step.number),
            micro_batch=self._session.batch.micro if self._session.halvings else None,
            tokens_seen=self._batches.progress.samples_seen * self._tokens,
            epoch=batch.epoch,
            block_id=batch.block_id,
            chunk_id=batch.chunk_id,
        )
        self._report_chunks(step)
        if self._overflows is not None:
            self._overflows.note(step.number, step.grad_norm)
        if step.number == self._session.first_step:
            self._session.phase("first step")
        if step.number < self._session.first_step + _SETTLING or step.number % LOOK_EVERY == 0:
            self._peak_memory.look()

    def _report_chunks(self, step: Step) -> None:
        strategy = self._session.strategy
        rank, world = strategy.place.rank, strategy.place.world_size
        for chunk in step.batch.finished:
            owner = self._batches.plan.owner(chunk.epoch, chunk.block_id, chunk.chunk_id, world)
            if owner == rank or not strategy.synchronised:
                self._session.reporter.event(
                    "chunk_complete",
                    step=step.number,
                    block_id=chunk.block_id,
                    chunk_id=chunk.chunk_id,
                    epoch=chunk.epoch,
                    gpu_id=rank,
                    optimizer_step=chunk.optimizer_step,
                    samples=chunk.samples,
                    loss=None if step.loss is None else float(step.loss),
                )

    def _device_memory(self, step: int) -> int | None:
        """The peak on a GPU, in a step in ten: PyTorch makes a table of a hundred figures for it, some 0.1 ms."""
        looks = step % _LOOK_EVERY == 0 or step < self._session.first_step + _SETTLING
        return torch.cuda.max_memory_allocated(self._device) if looks and self._device.type == "cuda" else None
