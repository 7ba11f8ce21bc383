"""Divergence watch: checks that the weights are finite when a checkpoint is due.

A loss or gradient that is not finite moves no weights (`non_finite`), but an update that is too large can. All ranks of
a replica group come to one verdict, so that they take a checkpoint together or leave it out together.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.training.non_finite import all_finite
from workers.training.setup import TrainingSetup


class DivergenceWatch:
    """One rank's watch; `last_good` is the step of the newest good checkpoint that was begun, None before the first."""

    def __init__(self, setup: TrainingSetup) -> None:
        self._strategy = setup.strategy
        self._replica = setup.replica
        self._reporter = setup.session.reporter
        self._verdict: tuple[int, bool] | None = None
        self._alerted = False
        self.last_good: int | None = None

    def weights_are_finite(self, step: int) -> bool:
        """Whether a checkpoint of `step` would be a good one; all ranks of the replica group call it at that step.

        Ranks in step may ask again at the same step, each at another moment: the answer is kept. A rank by itself looks
        again, as its weights may have been replaced by a mean.
        """
        if self._verdict is None or self._verdict[0] != step or not self._strategy.synchronised:
            finite = all_finite(self._replica.trained(), self._strategy.place.device)
            self._verdict = step, self._strategy.total([float(not finite)])[0] == 0
        return self._verdict[1]

    def alert(self, step: int, *, finite: bool) -> None:
        """Report that a checkpoint is left out: once, until one is good again."""
        if finite or self._alerted:
            self._alerted = not finite
            return
        self._alerted = True
        if self._strategy.group_rank != 0:
            return
        if self.last_good is None:
            kept, again = "and there is no earlier one", "start again"
        else:
            kept, again = "and earlier ones are kept", f"resume from the checkpoint of step {self.last_good}"
        self._reporter.event(
            "alert",
            step=step,
            kind="diverged",
            title="Training has diverged",
            cause=f"The weights are not finite at step {step}, so no checkpoint is taken, {kept}.",
            next_step=f"Stop the run, lower the learning rate, and {again}.",
        )

    def after_round(self, step: int, round_: int, left_out: Sequence[int]) -> None:
        """Raise the alert of a local SGD round that left out ranks whose weights are not finite."""
        rank, world = self._strategy.place.rank, self._strategy.place.world_size
        skipped = len(left_out) == world
        if rank not in left_out or (skipped and rank != 0):
            return
        if skipped:
            title = "A local SGD round was skipped"
            cause = f"The weights on all devices are not finite at round {round_}, so there is nothing to average."
        else:
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
