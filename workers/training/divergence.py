"""Watches for divergence: whether what was trained since the last checkpoint, and the weights, are finite.

Each step marks its loss and its gradient's norm on the device, which costs no waiting. The mark is read, and the
weights are looked at, only when a checkpoint is due: there a device is waited for anyway. All ranks of a replica group
come to one verdict (`Strategy.total`), so that they take a checkpoint together or leave it out together.

With fp16 the loss scale makes losses and gradients overflow now and then; such a step updates nothing and is no
divergence. There the weights alone decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.training.setup import TrainingSetup


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a replica group agreed on at one step.

    Attributes:
        steps_finite: Every loss and gradient since the last verdict was finite.
        weights_finite: The weights are.
    """

    steps_finite: bool
    weights_finite: bool

    @property
    def good(self) -> bool:
        """A checkpoint may be taken."""
        return self.steps_finite and self.weights_finite


class DivergenceWatch:
    """One rank's watch.

    Attributes:
        last_good: The step of the newest good checkpoint that was begun; None before the first.
    """

    def __init__(self, setup: TrainingSetup) -> None:
        self._strategy = setup.strategy
        self._replica = setup.replica
        self._scales = setup.precision.scaler.is_enabled()
        self._reporter = setup.session.reporter
        self._bad = torch.zeros((), dtype=torch.bool, device=setup.device)
        self._verdict: tuple[int, Verdict] | None = None
        self._alerted = False
        self.last_good: int | None = None

    def note(self, loss: Tensor | None, grad_norm: Tensor) -> None:
        """Marks a step, on the device."""
        if not self._scales:
            finite = torch.isfinite(grad_norm)
            self._bad |= ~(finite if loss is None else finite & torch.isfinite(loss))

    def verdict(self, step: int) -> Verdict:
        """Whether a checkpoint of `step` would be a good one; all ranks of the replica group call it at that step.

        Ranks in step may be asked for it again, each at another moment, while they wait at the same step: the answer
        is kept. A rank by itself looks again, as its weights may have been replaced by merged ones.
        """
        if self._verdict is not None and self._verdict[0] == step:
            if self._strategy.synchronised:
                return self._verdict[1]
            steps_were_finite = self._verdict[1].steps_finite
        else:
            steps_were_finite = True
        steps, weights = self._strategy.total([float(self._bad), float(not self._weights_are_finite())])
        self._bad.zero_()
        verdict = Verdict(steps == 0 and steps_were_finite, weights == 0)
        self._verdict = step, verdict
        return verdict

    def alert(self, step: int, verdict: Verdict) -> None:
        """Says that a checkpoint is left out: once, until one is good again."""
        if verdict.good or self._alerted:
            self._alerted = not verdict.good
            return
        self._alerted = True
        if self._strategy.group_rank != 0:
            return
        if self.last_good is None:
            kept, again = "and there is no earlier one", "start again"
        else:
            kept, again = "and earlier ones are kept", f"resume from the checkpoint of step {self.last_good}"
        what = "The weights" if not verdict.weights_finite else "The loss or the gradients"
        self._reporter.event(
            "alert",
            step=step,
            kind="diverged",
            title="Training has diverged",
            cause=f"{what} are not finite at step {step}, so no checkpoint is taken, {kept}.",
            next_step=f"Stop the run, lower the learning rate, and {again}.",
        )

    def after_round(self, step: int, round_: int, left_out: Sequence[int]) -> None:
        """Raises the alert of a local SGD round that left out ranks whose weights are not finite.

        Such a rank got the others' mean, so its earlier steps no longer speak against a checkpoint.
        """
        rank, world = self._strategy.place.rank, self._strategy.place.world_size
        skipped = len(left_out) == world
        if rank not in left_out or (skipped and rank != 0):
            return
        if skipped:
            title = "A local SGD round was skipped"
            cause = f"The weights on all devices are not finite at round {round_}, so there is nothing to average."
        else:
            self._bad.zero_()
            self._verdict = None
            title = "A device was left out of a local SGD round"
            cause = (
                f"Its weights are not finite at step {step}, so round {round_} takes the mean of the others. "
                f"It continues with that mean and a fresh optimizer state; its samples of this round count "
                "as trained but are not in the weights."
            )
        again = "Stop the run, lower the learning rate, and resume."
        self._reporter.event(
            "alert",
            step=step,
            kind="left_out_of_round",
            round=round_,
            ranks=list(left_out),
            title=title,
            cause=cause,
            next_step=again if skipped else f"If this happens again: {again[0].lower()}{again[1:]}",
        )

    def _weights_are_finite(self) -> bool:
        """Looks at what is trained only: a buffer may well hold infinities, as a mask does."""
        finite = torch.ones((), dtype=torch.bool, device=self._strategy.place.device)
        for tensor in self._replica.trained():
            finite &= torch.isfinite(tensor).all().to(finite.device)
        return bool(finite)
