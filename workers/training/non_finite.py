"""Non-finite guard: skips a batch whose loss or gradient is not finite, before the optimizer moves.

No collective is added for it. A loss that is not finite makes its whole gradient NaN (`mark`), gradients are
all-reduced anyway, and every rank reads the same norm. Only where that is not finite do ranks exchange the samples
of such losses. A rank that is a replica group by itself does not wait for the norm: its optimizer's kernel leaves the
step out, and the norm is read during the next step (`is_late`).

With fp16 the loss scale makes gradients overflow now and then, with finite losses: that step updates nothing by itself
and is none of ours (`workers.optim.precision`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from core.errors import NonFiniteError
from workers.training.batches import Indices, StepBatch, sample_ranges
from workers.training.memory_guard import MemoryGuard
from workers.training.setup import TrainingSetup
from workers.training.step_start import StepStart


class LateNumber:
    """One number at a time on its way from a device.

    `Tensor.item` waits for all that is queued on a GPU, also behind the number. A copy into pinned memory with an event
    is there as soon as the number is.
    """

    def __init__(self, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        event: Any = torch.cuda.Event  # torch's own is not typed
        self._value = torch.zeros((), dtype=torch.float64, pin_memory=on_gpu)  # holds every other format's numbers
        self._copied: Any = event() if on_gpu else None

    def put(self, value: Tensor) -> None:
        """Copy a number from the device without waiting; the one before must have been read."""
        self._value.copy_(value, non_blocking=True)
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(value.device))

    def read(self) -> float:
        if self._copied is not None:
            self._copied.synchronize()
        return float(self._value)


# Runs of samples that an alert's text names; its fields hold all of them.
_NAMED: Final = 8
# Runs of skipped samples that a message to the host takes, of which it gets one with each checkpoint.
_MOST_RANGES: Final = 40_000


class NonFiniteGuard:
    """One rank's guard; the ranks of a replica group come to the same answer at each step.

    `is_late`: the optimizer can leave a step out by itself, so that the norm may be read in the next one. Not with
    buffers, which have to be restored before the next forward pass.
    """

    def __init__(self, setup: TrainingSetup, start: StepStart, memory: MemoryGuard) -> None:
        config = setup.session.config
        self._session = setup.session
        self._strategy = setup.strategy
        self._batches = setup.batches
        self._replica = setup.replica
        self._scales = setup.precision.scaler.is_enabled()
        self._limit = config.non_finite_limit if config.non_finite == "skip" else 0
        self._start = start
        self._memory = memory
        self._losses: list[Tensor] = []
        self._skipped = 0
        self._norm = LateNumber(setup.device)
        self._unread: _Unread | None = None
        self.is_late = setup.strategy.group_size == 1 and setup.local_sgd is None and not start.has_buffers
        self.is_late &= setup.replica.skips_on_device

    def begin_step(self) -> None:
        self._losses = []

    def mark(self, loss: Tensor, weighted: Tensor) -> Tensor:
        """`weighted`, or NaN with its whole gradient if `loss` isn't finite.

        Not every such loss has a gradient that shows it: `clamp` gives 0 for one that is infinite. On a GPU every
        operation costs its launch, some 10 µs, and `torch.isfinite` is four: so the factor, 1 or NaN, is made of the
        loss itself.
        """
        loss = loss.detach()
        self._losses.append(loss)
        return weighted * (loss * 0 + 1).to(weighted.dtype)

    def may_step(self, batch: StepBatch, grad_norm: Tensor) -> bool:
        """Whether the optimizer may use the batch; else it is skipped, or the step is done again for lack of memory.

        Raises `NonFiniteError` where no further batch may be skipped or the weights are not finite either.
        """
        if math.isfinite(grad_norm.item()):
            # The model hides the NaN that was to tell the other ranks.
            if self._memory.is_short_here:
                raise self._memory.refusal()
            return True
        short, suspects, ranks, weights_are_finite = self._exchange(
            batch, self._losses, is_short=self._memory.is_short_here
        )
        if short:
            self._memory.agreed(short)
            return False
        if self._scales and not len(suspects) and weights_are_finite:
            return True  # an overflow, which the loss scale answers
        self._leave_out(Finding(self._session.step, batch, suspects, ranks, weights_are_finite))
        self._start.restore_buffers()
        return False

    def look_later(self, batch: StepBatch, grad_norm: Tensor) -> None:
        """Take the norm of a step whose update leaves itself out if it is not finite. After `settle`."""
        self._norm.put(grad_norm)
        self._unread = _Unread(self._session.step, batch, self._losses)

    def settle(self) -> None:
        """Read the norm of the step before, if it is unread, and report a batch that was left out."""
        unread, self._unread = self._unread, None
        if unread is None or math.isfinite(self._norm.read()):
            return
        _, suspects, ranks, weights_are_finite = self._exchange(unread.batch, unread.losses, is_short=False)
        self._leave_out(Finding(unread.step, unread.batch, suspects, ranks, weights_are_finite))

    def _leave_out(self, found: Finding) -> None:
        # Other ranks' weights may still reach ranks that step by themselves, in a round or a merge.
        if (not found.weights_are_finite and self._strategy.synchronised) or self._is_spent(found.batch):
            raise self._refusal(found)
        self._skipped += 1
        self._batches.skip(found.batch, found.step)
        self._report(found)

    def _is_spent(self, batch: StepBatch) -> bool:
        waiting = self._batches.skipped_ranges + len(sample_ranges(batch.indices))
        return self._skipped >= self._limit or waiting > _MOST_RANGES

    def _exchange(
        self, batch: StepBatch, losses: Sequence[Tensor], *, is_short: bool
    ) -> tuple[list[int], Indices, list[int], bool]:
        """What the ranks know of a gradient that is not finite, over all of them.

        Returns:
            Ranks of the group that ran out of memory; the samples of micro-batches whose loss is not finite; the run's
            ranks that have these; whether all ranks' weights are finite.
        """
        here, size = self._strategy.group_rank, self._strategy.group_size
        marks = [0.0] * len(batch.indices) if is_short else _marks(batch, losses)
        short = [float(rank == here and is_short) for rank in range(size)]
        bad = [float(rank == here and any(marks)) for rank in range(size)]
        weights = all_finite(self._replica.trained(), self._strategy.place.device)
        sums = self._strategy.total([*short, *bad, float(not weights), *marks])
        first = self._strategy.place.rank - here
        return (
            _marked(sums[:size]),
            batch.indices[[mark > 0 for mark in sums[2 * size + 1 :]]],
            [first + rank for rank in _marked(sums[size : 2 * size])],
            sums[2 * size] == 0,
        )

    def _refusal(self, found: Finding) -> NonFiniteError:
        if not found.weights_are_finite:
            return NonFiniteError(found.cause, "Lower the learning rate.", title="Training has diverged")
        if self._strategy.group_rank == 0:
            self._session.reporter.event("non_finite", **found.fields)
        if not self._limit:
            return NonFiniteError(found.cause, "Look at these samples, or lower the learning rate.")
        before = f"Batches skipped before it since the run was started or resumed: {self._skipped:,}."
        remedy = "Look at these samples, lower the learning rate, or raise the limit of skipped batches."
        return NonFiniteError(f"{found.cause} {before}", remedy)

    def _report(self, found: Finding) -> None:
        if self._strategy.group_rank != 0:
            return
        size = len(found.batch.indices)
        self._session.reporter.event(
            "alert",
            kind="non_finite",
            title="A batch was skipped",
            cause=f"{found.cause} None of the batch's {size:,} samples is trained; the weights stay as they were.",
            next_step="Look at these samples in the data. If it happens often, lower the learning rate.",
            skipped=self._skipped,
            limit=self._limit,
            ranks=found.ranks,
            **found.fields,
        )


@dataclass(frozen=True)
class Finding:
    """A batch that is not finite.

    Attributes:
        step: The step that it would have made.
        suspects: The samples of those micro-batches whose loss is not finite; none where only the gradient is not.
        ranks: The ranks that have these samples.
        weights_are_finite: Else no batch is at fault.
    """

    step: int
    batch: StepBatch
    suspects: Indices
    ranks: list[int]
    weights_are_finite: bool

    @property
    def cause(self) -> str:
        if not self.weights_are_finite:
            return f"At step {self.step:,} the weights are not finite."
        what, samples = ("loss", self.suspects) if len(self.suspects) else ("gradient", self.batch.indices)
        return f"At step {self.step:,} the {what} of {_samples_text(samples)} is not finite."

    @property
    def fields(self) -> dict[str, Any]:
        """The batch's place in the data and its samples, for `metrics.jsonl`."""
        batch = self.batch
        return {
            "step": self.step,
            "epoch": batch.epoch,
            "block_id": batch.block_id,
            "chunk_id": batch.chunk_id,
            "samples": sample_ranges(batch.indices),
            "suspects": sample_ranges(self.suspects) if len(self.suspects) else [],
        }


@dataclass(frozen=True)
class _Unread:
    step: int
    batch: StepBatch
    losses: Sequence[Tensor]


def _marks(batch: StepBatch, losses: Sequence[Tensor]) -> list[float]:
    """1 for each sample of the batch that is in a micro-batch of this rank whose loss is not finite."""
    marks = [0.0] * len(batch.indices)
    place = batch.first
    for micro, loss in zip(batch.micro_batches, losses, strict=True):
        size = len(micro.indices) if micro.weight else 0
        if not math.isfinite(loss.item()):
            marks[place : place + size] = [1.0] * size
        place += size
    return marks


def all_finite(tensors: Iterable[Tensor], device: torch.device) -> bool:
    """Whether every element is finite; waits for the device once."""
    finite = torch.ones((), dtype=torch.bool, device=device)
    for tensor in tensors:
        finite &= torch.isfinite(tensor).all().to(device)
    return bool(finite)


def _marked(sums: Sequence[float]) -> list[int]:
    return [number for number, mark in enumerate(sums) if mark > 0]


def _samples_text(indices: Indices) -> str:
    """ "sample 7", "samples 7, 12 to 15", "samples 7, 9, … (64 in all)"."""
    runs = sample_ranges(indices)
    names = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:_NAMED]]
    more = f" … ({len(indices):,} in all)" if len(runs) > _NAMED else ""
    return f"sample{'s' if len(indices) > 1 else ''} {', '.join(names)}{more}"
