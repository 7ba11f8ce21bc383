"""Step reports: one metrics line a step, and alarms for the two ways in which a run quietly stops learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from core.errors import RankdeckError
from workers.host_link.reporter import Reporter
from workers.optim.precision import Precision, SkippedSteps
from workers.training.batches import GroupBatches, StepBatch
from workers.training.divergence import DivergenceWatch
from workers.training.session import Session

_NONFINITE_LIMIT: Final = 50
_NONFINITE_CHECK_EVERY: Final = 10


class DivergedError(RankdeckError):
    """The loss has not been a number for many steps."""

    title = "The loss is not a finite number"


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step that is done.

    Attributes:
        number: From 1.
        batch: This rank's share of it.
        metrics: Means over that share by name, tensors without dimensions, the loss among them; none when the share
            was empty.
        lr: Learning rate.
        grad_norm: Before clipping, a tensor without dimensions.
        time_s: From the end of the boundary before, with what was waited for other ranks.
        sync: What synchronising with other ranks cost, by metric name.
    """

    number: int
    batch: StepBatch
    metrics: Mapping[str, Tensor]
    lr: float
    grad_norm: Tensor
    time_s: float
    sync: Mapping[str, float | None]

    @property
    def loss(self) -> Tensor | None:
        """None when the share was empty."""
        return self.metrics.get("loss")


class StepReports:
    """Reports steps and finished chunks, and raises or warns when nothing is learned any more.

    Args:
        session: Where reports go.
        batches: Knows how many samples were seen.
        precision: Knows the loss scale.
        divergence: Told of each step.
        tokens_per_sample: For figures in tokens.
    """

    def __init__(
        self,
        session: Session,
        batches: GroupBatches,
        precision: Precision,
        divergence: DivergenceWatch,
        tokens_per_sample: int,
    ) -> None:
        self._session = session
        self._batches = batches
        self._precision = precision
        self._divergence = divergence
        self._tokens = tokens_per_sample
        self._device = session.strategy.place.device
        self._skipped = SkippedSteps(precision, self._device)
        self._nonfinite = torch.zeros((), dtype=torch.int64, device=self._device)

    def step(self, step: Step) -> None:
        """Reports a step.

        Raises:
            DivergedError: The loss has not been finite, or every gradient has overflowed, for too long.
        """
        batch, time_s = step.batch, step.time_s
        if self._device.type == "cuda" and step.number == self._session.first_step:
            torch.cuda.synchronize(self._device)  # else the first steps' times are those of queueing only
        self._session.reporter.log(
            step.number,
            **step.metrics,
            lr=step.lr,
            grad_norm=step.grad_norm,
            loss_scale=self._precision.loss_scale(),
            tokens_per_s=batch.samples * self._tokens / time_s,
            samples_per_s=batch.samples / time_s,
            step_time_s=time_s,
            data_wait_s=batch.wait_s,
            **step.sync,
            device_mem_bytes=self._device_memory(),
            tokens_seen=self._batches.progress.samples_seen * self._tokens,
            epoch=batch.epoch,
            block_id=batch.block_id,
            chunk_id=batch.chunk_id,
        )
        self._report_chunks(step)
        self._divergence.note(step.loss, step.grad_norm)
        self._check_finite(step)
        self._check_skipped(step)
        if step.number == self._session.first_step:
            self._session.phase("first step")

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

    def _check_finite(self, step: Step) -> None:
        """Counts steps in a row whose loss is not finite, on the device; looks at the count now and then."""
        if step.loss is None:
            return
        self._nonfinite = torch.where(torch.isfinite(step.loss), 0, self._nonfinite + 1)
        if step.number % _NONFINITE_CHECK_EVERY == 0 and int(self._nonfinite) >= _NONFINITE_LIMIT:
            raise DivergedError(
                f"For {int(self._nonfinite)} steps up to step {step.number} the loss was not a finite number.",
                "Lower the learning rate or lengthen the warm-up.",
            )

    def _check_skipped(self, step: Step) -> None:
        found = self._skipped.note(step.number, step.grad_norm)
        if found == "hopeless":
            raise DivergedError(
                f"Up to step {step.number} every gradient for at least 50 steps overflowed fp16 and was skipped.",
                "Choose precision bf16 or fp32, or lower the learning rate, and resume.",
            )
        if found and self._session.strategy.group_rank == 0:
            self._session.reporter.event(
                "alert",
                step=step.number,
                kind="overflow",
                title="The model is not learning",
                cause="For 25 steps or more in a row the gradient overflowed fp16, so the steps were skipped.",
                next_step="If this continues, choose precision bf16 or fp32.",
            )

    def _device_memory(self) -> int | None:
        return torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else None


def report_model(reporter: Reporter, model: nn.Module) -> None:
    """Tells a model's size: what synchronising gradients or weights costs follows from it.

    Args:
        reporter: Where it goes.
        model: Whole, before any mode takes a share of it.
    """
    sizes = [(p.numel(), p.numel() * p.element_size(), p.requires_grad) for p in model.parameters()]
    reporter.event(
        "model",
        parameters=sum(numel for numel, _, _ in sizes),
        trainable=sum(numel for numel, _, trained in sizes if trained),
        trainable_bytes=sum(size for _, size, trained in sizes if trained),
    )
