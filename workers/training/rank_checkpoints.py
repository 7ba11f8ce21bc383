"""Checkpoints of one rank: when one is due, whether it would be a good one, what it keeps, and how a resume uses it.

`commits` is the protocol with the host and `checkpoint` the files; this decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from core.protocol.messages import Position, RankStart
from workers.training import checkpoint
from workers.training.batches import saved_progress
from workers.training.commits import CommitRequest, Commits
from workers.training.divergence import DivergenceWatch
from workers.training.horizon import Horizon
from workers.training.setup import TrainingSetup
from workers.training.validation import Validation

# A prime: the seeds of different ranks and steps do not meet.
_SEED_STEP: Final = 1_000_003


def fresh_seed(seed: int, rank: int, step: int) -> int:
    """The seed of a rank without saved generators; different for each rank and step."""
    return seed + 1 + rank + _SEED_STEP * step


def taken_up(counters: Mapping[str, Any], start: RankStart | None, rank: int) -> dict[str, Any]:
    """Saved counters as a rank resumes with them; unchanged without the host's word (`start`).

    Counts of what a rank has learned by itself begin at zero where it takes up weights that are not its own.
    """
    values = dict(counters)
    if start is None:
        return values
    values["step"] = start.step
    if start.samples_seen is not None:
        gained = start.samples_seen - int(values["samples_seen"])
        values["samples_seen"] = start.samples_seen
        if values.get("dial"):
            values["dial"] = {**values["dial"], "samples_at": int(values["dial"]["samples_at"]) + gained}
    if start.copy != str(rank):
        values["chunks_alone"] = 0
    if not start.copy.isdecimal():
        # Of one copy among several, or of no copy at all.
        values["val_loss"] = None
    return values


class RankCheckpoints:
    """Takes this rank's part in checkpoints, and restores its counters.

    `settle` is called before a checkpoint: it brings the position in the data up to date.
    """

    def __init__(
        self, setup: TrainingSetup, horizon: Horizon, validation: Validation, settle: Callable[[], None]
    ) -> None:
        session = setup.session
        self._settle = settle
        self._setup = setup
        self._session = session
        self._strategy = setup.strategy
        self._batches = setup.batches
        self._local_sgd = setup.local_sgd
        self._horizon = horizon
        self._validation = validation
        self._same_weights_at = 0
        self.commits = Commits(session.reporter, session.inbox)
        self.divergence = DivergenceWatch(setup)

    def is_due(self, previous: int) -> bool:
        """Whether the steps since the last checkpoint ask for one; `previous` is the step of the boundary before."""
        every = self._session.config.checkpoint_every_steps
        if every is None:
            return False
        if self._strategy.synchronised:
            return passed(every, previous, self._session.step)  # the same answer on every rank
        since = self._session.first_step - 1 if self.commits.considered is None else self.commits.considered
        return self._session.step - since >= every

    def take(self, reason: str, *, surely: bool = False, wait: bool = False, join: bool = False) -> None:
        """Take a checkpoint; one that would not be good is left out, unless the run ends here (`surely`).

        `wait`: until the one before is written, rather than take none.
        """
        self._settle()
        step, rounds = self._session.step, 0 if self._local_sgd is None else self._local_sgd.round
        finite = self.divergence.weights_are_finite(step)
        if not surely:
            self.divergence.alert(step, finite=finite)
            if not finite:
                self.commits.leave_out(step, rounds, alone=not self._strategy.synchronised)
                return
        request = CommitRequest(
            step,
            reason,
            lambda: checkpoint.take_part(self._strategy, self._setup.replica, step, self._counters()),
            self._position,
            self._validation.loss_at(step) if finite else None,
            rounds,
            diverged=not finite,
        )
        when_free = surely or wait
        begun = self.commits.begin_when_free(request) if when_free else self.commits.begin(request, join=join)
        if surely:
            self.commits.wait_written()
        if begun > 0 and finite:
            self.divergence.last_good = step

    def is_taken(self) -> bool:
        """Whether a part of this attempt holds this very step, with its validation loss.

        If that checkpoint should fail after all, the host asks for another.
        """
        last, step = self.commits.last, self._session.step
        if last is None or (self._local_sgd is not None and last.round != self._local_sgd.round):
            return False
        return last.step == step and last.val_loss == self._validation.loss_at(step)

    def note_same_weights(self) -> None:
        """Note that all ranks hold the same weights, after a round of local SGD."""
        self._same_weights_at = self._batches.progress.chunks_done

    def note_committed(self) -> None:
        while self._session.inbox.committed:
            self._batches.committed(self._session.inbox.committed.pop(0))

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Continue from counters that `taken_up` adapted to this attempt's ranks."""
        self._session.step = self.divergence.last_good = int(counters["step"])
        self._batches.progress = saved_progress(counters)
        self._same_weights_at = self._batches.progress.chunks_done - int(counters.get("chunks_alone", 0))
        self._validation.restore(counters)
        self._horizon.restore(counters)
        if counters.get("scaler"):
            self._setup.precision.scaler.load_state_dict(counters["scaler"])

    def _position(self, number: int) -> Position:
        """The position in the data, for the checkpoint that the host has just named.

        By then it has told every rank of the one before, and each must leave out of its position what that one holds,
        or ranks of one replica group would name different chunks.
        """
        self.note_committed()
        return self._batches.position(self._session.step, number)

    def _counters(self) -> dict[str, Any]:
        """This rank's counters, JSON values."""
        setup, progress = self._setup, self._batches.progress
        return {
            "step": self._session.step,
            "samples_seen": progress.samples_seen,
            "chunks_done": progress.chunks_done,
            "scaler": setup.precision.scaler.state_dict(),
            "chunks_alone": progress.chunks_done - self._same_weights_at,
            "mode": self._strategy.name,
            "world_size": self._strategy.place.world_size,
            **self._validation.counters(),
            **self._horizon.counters(),
            **self._strategy.counters(),
            **({} if setup.shares is None else setup.shares.counters()),
            **({} if self._local_sgd is None else self._local_sgd.counters()),
        }


def passed(every: int | None, before: int, step: int) -> bool:
    """Whether a multiple of `every` lies behind `before` and not behind `step`: of one step to the next, is `step`."""
    return every is not None and step // every > before // every
