"""The boundary between two optimizer steps: agree on what the host wants, evaluate, checkpoint, synchronise, stop.

Only here is it known exactly which samples the weights have seen: inside a step, gradients hold a part of a batch. So
everything that is measured, saved or decided waits for it, and a run that is killed anywhere resumes at one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from core.protocol.messages import RankDone
from workers.training.horizon import Horizon
from workers.training.independent.model_merge import merge
from workers.training.rank_checkpoints import RankCheckpoints, passed
from workers.training.setup import TrainingSetup
from workers.training.validation import Validation


class Wish(IntEnum):
    """Requests of the host; of several ranks' wishes the highest counts."""

    NOTHING = 0
    CHECKPOINT = 1
    STOP = 2


class Boundary:
    """One rank's work before, between and after its steps.

    `settle` is called before anything is saved: the last step may still turn out to have been left out.
    """

    def __init__(self, setup: TrainingSetup, horizon: Horizon, settle: Callable[[], None]) -> None:
        self._setup = setup
        self._session = setup.session
        self._strategy = setup.strategy
        self._batches = setup.batches
        self._horizon = horizon
        self._local_sgd = setup.local_sgd
        self._validation = Validation(setup)
        self.checkpoints = RankCheckpoints(setup, horizon, self._validation, settle)
        self._previous = 0

    # before a step

    def before_first_step(self) -> bool:
        """Repeat the local SGD round that a stop or a kill left undone; True when the run is to stop here again."""
        self._previous = self._session.step
        return self._round_stops()

    # after a step

    def after_step(self) -> bool:
        """Do everything between two steps; True when the run is to stop here."""
        step, config = self._session.step, self._session.config
        self._read_inbox()
        # A round comes first, so that what is evaluated and saved at its step is what all ranks share.
        if self._round_stops():
            return True
        if self._setup.task.whole_chunks and not self._batches.between_chunks:
            return False
        self._horizon.report_goal()
        # All ranks have to act at the same step. In DDP the vote travels beside the next step and is read at the next
        # boundary: a stop comes one step later, and no step waits for it.
        wish = self._strategy.agree(self._wish())
        # The answer now, not at the next boundary: that is a whole chunk away.
        if self._setup.task.whole_chunks:
            wish = max(wish, self._strategy.settle())
        if self._setup.shares is not None:
            self._setup.shares.boundary(step)
        previous, self._previous = self._previous, step
        if passed(config.eval_every, previous, step):
            self._validation.take(step)
        if wish == Wish.STOP:
            return True
        if self._validation.best_at == step:
            self.checkpoints.take("best", wait=True)
        elif wish == Wish.CHECKPOINT or self.checkpoints.is_due(previous):
            self.checkpoints.take("asked" if wish else "steps")
        return False

    def _wish(self) -> Wish:
        """The host's request that this rank knows of; a request for a checkpoint is voiced once."""
        inbox, every_s = self._session.inbox, self._session.config.checkpoint_every_s
        # Rank 0's clock alone, since clocks differ: the vote tells the others.
        by_clock = every_s is not None and self._strategy.place.rank == 0 and self.checkpoints.commits.is_due(every_s)
        if inbox.stop_asked:
            return Wish.STOP
        if inbox.commit_asked or by_clock:
            inbox.commit_asked = False
            self.checkpoints.commits.reset_age()
            return Wish.CHECKPOINT
        return Wish.NOTHING

    # after the last step

    def last_rounds(self) -> bool:
        """Take part in rounds until no rank has steps left (True) or the host wants a stop (False)."""
        rounds = self._local_sgd
        while rounds is not None and not rounds.over:
            self._read_inbox()
            if self._takes_wish_to_commit():
                self.checkpoints.take("asked")
            if not self._synchronise():
                return False
        if rounds is not None:
            self._session.reporter.event("synchronised", step=self._session.step, **rounds.totals())
        return True

    def finish(self, finished: bool) -> None:
        """Evaluate if the work is done, take the last checkpoint, and serve the host until it lets this rank go."""
        self._strategy.settle()
        if finished:
            self._validation.take(self._session.step, final=True)
        elif self._local_sgd is not None:
            self._local_sgd.leave()
        if self.checkpoints.is_taken():
            self.checkpoints.commits.wait_written()
        else:
            self.checkpoints.take("finished" if finished else "stopped", surely=True)
        self._session.reporter.send(RankDone(self._session.step, finished))
        self._serve()

    def _serve(self) -> None:
        """Commit again and merge, as the host asks, until it lets this rank go."""
        inbox = self._session.inbox
        while not inbox.finish:
            inbox.wait(0.5)
            self.checkpoints.note_committed()
            while inbox.orders:
                merge(inbox.orders.popleft(), self._session, self._setup.model, self._validation.evaluation)
            if self._takes_wish_to_commit():
                self.checkpoints.take("asked", surely=True)

    def _read_inbox(self) -> None:
        self._session.inbox.poll()
        self.checkpoints.note_committed()

    def _takes_wish_to_commit(self) -> bool:
        wanted, self._session.inbox.commit_asked = self._session.inbox.commit_asked, False
        return wanted

    # rounds of local SGD

    def _round_stops(self) -> bool:
        """Take part in a round where one is due; True when the run is to stop instead."""
        rounds = self._local_sgd
        return rounds is not None and rounds.due(self._session.step) and not self._synchronise()

    def _synchronise(self) -> bool:
        """Make one round, unless a rank was told to stop (False)."""
        rounds, step = self._local_sgd, self._session.step
        assert rounds is not None
        done = rounds.synchronise(
            step,
            self._batches.progress.samples_seen,
            active=self._horizon.has_steps_left,
            stop=self._session.inbox.stop_asked,
            newest=lambda: self.checkpoints.commits.newest,
            meanwhile=self._join_if_asked,
            join=self._join,
        )
        if done:
            self.checkpoints.note_same_weights()
            self.checkpoints.divergence.after_round(step, rounds.round, rounds.left_out)
        return done

    def _join_if_asked(self) -> None:
        self._read_inbox()
        if self._takes_wish_to_commit():
            self._join()

    def _join(self) -> None:
        self.checkpoints.take("others commit", join=True)
