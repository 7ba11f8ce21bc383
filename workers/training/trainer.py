"""The training loop that every recipe gets: one class, read from `fit` downwards.

    for each optimizer step:  claim data → micro-batches (accumulate) → clip → update → report
    at the boundary after it: agree on what the host wants → evaluate → commit → merge → stop

What the weights have seen is known exactly at a boundary and nowhere else; so everything that is saved, measured
or decided happens there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from core.fault_points import reach
from core.protocol.messages import Claim, GoalProgress, Grant, Merge, Position, RankDone
from workers.optim import seeding
from workers.optim.lr_schedule import Schedule, saved_schedule
from workers.optim.precision import Precision, agreed
from workers.training import checkpoint
from workers.training.batch_shares import share_out_of
from workers.training.batches import ChunkPlan, LaneBatches, StepBatch, saved_progress
from workers.training.commits import Commits
from workers.training.counters import fresh_seed, taken_up
from workers.training.divergence import DivergenceWatch
from workers.training.evaluation import Evaluation, to_device
from workers.training.local_sgd import dial_of
from workers.training.measured import Measured
from workers.training.model_merge import MergeRounds, merge
from workers.training.sampling import Sampling
from workers.training.session import Session
from workers.training.step_reports import Step, StepReports, report_model
from workers.training.task import StepSamples, Task
from workers.training.warm_up import Rehearsal

_COMMIT: Final = 1
_STOP: Final = 2


class Trainer:
    """Trains a task under a session; a recipe calls `fit` and nothing else.

    Args:
        session: This rank's config, place, and line to its host. Its data must be ready.
        task: What to train.
    """

    def __init__(self, session: Session, task: Task) -> None:
        self._session = session
        self._task = task
        self._strategy = session.strategy
        self._device = session.strategy.place.device
        config = session.config
        lane = self._strategy
        self._precision = Precision(agreed(config.precision, self._device, lane.lane_size, lane.total), self._device)
        # A model that is shared out stays where it was made: whole, it may not fit on the device.
        self._model = task.model if self._strategy.forward_is_collective else task.model.to(self._device)
        if lane.place.rank == 0:
            report_model(session.reporter, self._model)
        if session.resume_folder is not None:
            self._strategy.recall(checkpoint.saved_counters(session.resume_folder))
        self._replica = self._strategy.replicate(self._model, task.optimization, config.lr, self._precision)
        if self._strategy.place.rank == 0 and (figures := self._strategy.figures()):
            session.reporter.event("exchange", **figures)
        sizes = (config.samples_per_block, config.dataset_chunk_size)
        plan = ChunkPlan(session.data.samples, *sizes, config.seed, task.shuffled)
        self._batch = session.batch
        self._batches = LaneBatches(
            plan,
            self._claim,
            self._batch.global_,
            self._batch.micro,
            self._strategy.lane_rank,
            self._strategy.lane_size,
            alike=self._strategy.micro_batches_alike,
        )
        self._shares = share_out_of(config.balance, self._strategy, self._batches, session.reporter)
        self._schedule = Schedule.new(self._plan_steps(plan), (config.steps, config.epoch_limit))
        self._evaluation = Evaluation.of(task, session.data.val_samples, self._batch.micro, self._precision)
        self._sampling = Sampling(session, task, self._replica, self._model, self._precision)
        self._merges = MergeRounds(config.merge_policy, config.merge_every_chunks, self._strategy.synchronised)
        self._dial = dial_of(self._strategy, self._replica)
        self._commits = Commits(session.reporter, session.inbox)
        self._divergence = DivergenceWatch(self._strategy, self._replica, self._precision, session.reporter)
        self._step = 0
        self._done = False
        self._val_loss: tuple[int, float] | None = None
        self._known_loss: tuple[int, float] | None = None
        self._alike_at = 0
        samples = session.data.samples
        self._rehearsal = Rehearsal(task, self._replica, self._precision, self._batches, samples, self._device)
        per_sample = task.tokens_per_sample
        self._reports = StepReports(session, self._batches, self._precision, self._divergence, per_sample)
        self._boundary_ended = 0.0
        self._boundary_at = 0

    def fit(self) -> None:
        """Trains from where the newest generation stands until done or stopped, and stays until the host lets go."""
        self._rehearsal.warm_up()
        self._restore()
        self._report_goal()
        self._session.phase("ready")
        finished = self._train()
        self._strategy.settle()
        if finished:
            self._evaluate(final=True)
        elif self._dial is not None:
            self._dial.withdraw()
        if self._is_committed():
            self._commits.wait_written()
        else:
            self._commit("finished" if finished else "stopped", surely=True)
        self._done = True
        self._session.reporter.send(RankDone(self._step, finished))
        self._serve(lambda: self._session.inbox.finish)
        self._session.step = self._step

    # one step

    def _train(self) -> bool:
        """Steps until the work is done (True) or the host wants a stop (False)."""
        if self._dial is not None and self._dial.due(self._step) and not self._meet():  # resumed just before a round
            return False
        while self._step < self._last_step and not self._has_reached_goal:
            # Asked before a step, not after one, so that a run resumed between commit and merge merges first.
            if self._merges.due(self._batches.progress.chunks_done) and self._wait_for_merge():
                return False
            self._boundary_ended = time.perf_counter()
            batch = self._batches.next(self._step + 1)
            if batch is None:
                break
            self._expect()
            self._train_step(batch)
            reach("mid_chunk", self._step)
            if self._boundary():
                return False
        return self._last_rounds()

    def _train_step(self, batch: StepBatch) -> None:
        self._step += 1
        place, peak = self._schedule.place(self._step), self._session.config.lr
        lr = self._task.optimization.lr(place, self._schedule.length, peak)
        self._replica.set_lr(lr)
        if not self._is_wanted(batch):
            own_s = time.perf_counter() - self._boundary_ended
            self._reports.step(Step(self._step, batch, {}, lr, torch.zeros(()), own_s, {}))
            return
        totals: dict[str, Tensor] = {}
        last = len(batch.micro_batches) - 1
        for number, micro in enumerate(batch.micro_batches):
            inputs = to_device(self._task.batch(micro.indices), self._device)
            with self._replica.micro_batch(last=number == last):
                with nullcontext() if self._shares is None else self._shares.timed(micro), self._precision.forward():
                    measured = Measured.of(self._task.loss(self._replica.module, inputs))
                self._replica.backward(measured.loss * micro.weight, last=number == last)
            for name, figure in measured.figures.items():
                totals[name] = totals.get(name, 0) + figure.float() * (len(micro.indices) if batch.samples else 0)
        grad_norm = self._replica.update()
        sync = {"sync_wait_s": self._replica.sync_wait_s()} if self._dial is None else self._dial.take_figures()
        own_s = time.perf_counter() - self._boundary_ended
        waited_s = 0.0 if self._dial is None else sync["sync_wait_s"] or 0.0  # a round lies between two steps
        means = {name: total / batch.samples for name, total in totals.items()} if batch.samples else {}
        self._reports.step(Step(self._step, batch, means, lr, grad_norm.detach(), own_s + waited_s, sync))

    def _is_wanted(self, batch: StepBatch) -> bool:
        """Has the recipe make what the step is made of; False when it wants no update."""
        if self._task.before_step is None:
            return True
        with torch.no_grad(), self._precision.forward():
            return self._task.before_step(StepSamples(batch.epoch, batch.indices, batch.own))

    # the boundary after a step

    def _boundary(self) -> bool:
        """Everything between two steps.

        Returns:
            True when the run is to stop here.
        """
        inbox, config = self._session.inbox, self._session.config
        inbox.poll()
        self._note_commits()
        if self._dial is not None and self._dial.due(self._step) and not self._meet():
            return True
        if self._task.whole_chunks and not self._batches.between_chunks:
            return False
        self._report_goal()
        agreed = self._strategy.agree(self._wish())
        if self._task.whole_chunks:  # the answer now, not at the next boundary: that is a whole chunk away
            agreed = max(agreed, self._strategy.settle())
        if self._shares is not None:
            self._shares.boundary(self._step)
        before, self._boundary_at = self._boundary_at, self._step
        if _passed(config.eval_every, before, self._step):
            self._evaluate()
        if agreed == _STOP:
            return True
        if agreed == _COMMIT or self._commit_is_due(before):
            self._commit("asked" if agreed else "steps")
        return False

    def _wish(self) -> int:
        """What this rank knows the host wants, as a flag; a wish for a commit is voiced once."""
        inbox, every_s = self._session.inbox, self._session.config.checkpoint_every_s
        by_clock = every_s is not None and self._strategy.place.rank == 0 and self._commits.is_due(every_s)
        if inbox.stop_asked:
            return _STOP
        if inbox.commit_asked or by_clock:
            inbox.commit_asked = False
            self._commits.reset_age()
            return _COMMIT
        return 0

    def _commit_is_due(self, before: int) -> bool:
        every = self._session.config.checkpoint_every_steps
        if every is None:
            return False
        if self._strategy.synchronised:
            return _passed(every, before, self._step)  # the same answer on every rank
        since = self._session.first_step - 1 if self._commits.considered is None else self._commits.considered
        return self._step - since >= every

    def _commit(self, reason: str, *, surely: bool = False, join: bool = False) -> None:
        """Takes a checkpoint; one that would not be good is left out, unless the run ends here (`surely`)."""
        verdict, round_ = self._divergence.verdict(self._step), 0 if self._dial is None else self._dial.round
        if not surely:
            self._divergence.alert(self._step, verdict)
            if not verdict.good:
                self._commits.leave_out(self._step, round_, alone=not self._strategy.synchronised)
                return
        begin = self._commits.begin_surely if surely else partial(self._commits.begin, join=join)
        begun = begin(
            self._step,
            reason,
            lambda: checkpoint.take_part(self._strategy, self._replica, self._step, self._counters()),
            self._position,
            self._measured() if verdict.weights_finite else None,
            round_=round_,
            diverged=not verdict.weights_finite,
        )
        if begun > 0 and verdict.good:
            self._divergence.last_good = self._step

    def _position(self, generation: int) -> Position:
        """The place in the data, for the generation that the host has just named.

        By then it has told every rank of the one before, and each must leave out of its position what that one holds,
        or ranks of one lane would name different chunks.
        """
        self._note_commits()
        return self._batches.position(self._step, generation)

    def _is_committed(self) -> bool:
        """This very step is in a part of this attempt already, with its validation loss.

        If that generation should fail after all, the host asks for another.
        """
        last = self._commits.last
        if self._dial is not None and last is not None and last.round != self._dial.round:
            return False
        return last is not None and last.step == self._step and last.val_loss == self._measured()

    def _measured(self) -> float | None:
        """The validation loss of this very step, if it was measured and is a number."""
        measured = self._val_loss[1] if self._val_loss is not None and self._val_loss[0] == self._step else None
        return measured if measured is not None and math.isfinite(measured) else None

    def _note_commits(self) -> None:
        while self._session.inbox.committed:
            self._batches.committed(self._session.inbox.committed.pop(0))

    def _evaluate(self, *, final: bool = False) -> None:
        """Measures the validation loss at this step and samples a text, unless that has been done."""
        if self._evaluation is None:
            return
        if self._val_loss is None or self._val_loss[0] != self._step:
            self._measure(self._evaluation)
        self._sampling.take(self._step, final=final)

    def _measure(self, evaluation: Evaluation) -> None:
        self._session.phase("evaluating")
        val_loss, figures = evaluation.measure_all(self._replica.evaluated, self._strategy)
        self._val_loss = (self._step, val_loss)
        if math.isfinite(val_loss):
            self._known_loss = self._val_loss
        if self._strategy.lane_rank == 0:
            self._session.reporter.event("eval", step=self._step, val_loss=val_loss, **figures)

    # rounds of ranks that train by themselves

    def _meet(self) -> bool:
        """Brings all ranks' weights together, where no rank was told to stop (False); see
        `workers.training.local_sgd`.
        """
        assert self._dial is not None
        met = self._dial.meet(
            self._step,
            self._batches.progress.samples_seen,
            active=self._step < self._total_steps and not self._batches.exhausted and not self._has_reached_goal,
            stop=self._session.inbox.stop_asked,
            newest=lambda: self._commits.newest,
            meanwhile=self._join_if_asked,
            join=lambda: self._commit("others commit", join=True),
        )
        if met:
            self._alike_at = self._batches.progress.chunks_done
            self._divergence.after_round(self._step, self._dial.round, self._dial.left_out)
        return met

    def _join_if_asked(self) -> None:
        inbox = self._session.inbox
        inbox.poll()
        self._note_commits()
        if inbox.commit_asked:
            inbox.commit_asked = False
            self._commit("others commit", join=True)

    def _last_rounds(self) -> bool:
        """Out of data: takes part in rounds until no rank has steps left (True) or the host wants a stop (False)."""
        while self._dial is not None and not self._dial.over:
            inbox = self._session.inbox
            inbox.poll()
            self._note_commits()
            if inbox.commit_asked:
                inbox.commit_asked = False
                self._commit("asked")
            if not self._meet():
                return False
        if self._dial is not None:
            self._session.reporter.event("synchronised", step=self._step, **self._dial.totals())
        return True

    # waiting for the host

    def _serve(self, until: Callable[[], bool]) -> None:
        """Does what the host asks until the condition holds: commits again, merges, loads merged weights."""
        inbox = self._session.inbox
        while not until():
            inbox.wait(0.5)
            self._note_commits()
            while inbox.orders:
                order = inbox.orders.popleft()
                if isinstance(order, Merge):
                    policy, final = self._merges.policy, self._done
                    merge(order, self._session, self._model, self._evaluation, policy, final=final)
                elif not self._done:  # a rank that is done keeps the weights it ended with, also after a resume
                    self._merges.take(order, self._model)
                    self._alike_at = self._batches.progress.chunks_done
            if inbox.commit_asked:  # after the orders: a rank that went on before us commits its merged weights
                inbox.commit_asked = False
                self._commit("asked", surely=True)

    def _wait_for_merge(self) -> bool:
        """Waits at a merge round until the merged weights are in.

        Returns:
            True when the run is to stop instead; the round is then repeated after resume.
        """
        inbox, done = self._session.inbox, self._merges.done
        self._session.reporter.send(self._merges.ready(self._step))
        self._serve(lambda: self._merges.done > done or inbox.stop_asked)
        return self._merges.done == done

    def _claim(self, sequence: int) -> Grant:
        reach("before_claim", self._step)
        self._session.reporter.send(Claim(sequence))
        while True:
            grant = self._session.inbox.wait_for(Grant)
            if grant.sequence == sequence:
                return grant

    # beginnings

    def _restore(self) -> None:
        session, rank, start = self._session, self._strategy.place.rank, self._session.start
        seeding.seed_everything(fresh_seed(session.config.seed, rank, start.step if start else 0))
        folder = session.resume_folder
        counters: dict[str, Any] = {}
        if folder is not None:
            saved = checkpoint.load_part(folder, self._strategy, self._replica, start.copy if start else "")
            counters = taken_up(saved, start, rank, session.config.merge_every_chunks)
            self._step = self._divergence.last_good = int(counters["step"])
            self._batches.progress = saved_progress(counters)
            self._merges.done = int(counters["merges_done"])
            self._alike_at = self._batches.progress.chunks_done - int(counters.get("chunks_alone", 0))
            if counters.get("val_loss") is not None:
                self._known_loss = (int(counters["val_step"]), float(counters["val_loss"]))
            if (schedule := saved_schedule(counters.get("schedule"))) is not None:
                self._schedule = schedule.resumed(self._schedule, self._step)
            if self._task.goal is not None and counters.get("goal"):
                self._task.goal.restore(counters["goal"])
            if counters.get("scaler"):
                self._precision.scaler.load_state_dict(counters["scaler"])
        if self._shares is not None:
            with self._rehearsal.without_trace():
                self._shares.begin(counters, self._step, self._rehearsal.alone)
        if self._dial is not None:
            self._dial.begin(None if folder is None else counters, self._step, self._batches.progress.samples_seen)
        self._session.first_step = self._step + 1
        self._boundary_at = self._step

    def _counters(self) -> dict[str, Any]:
        progress = self._batches.progress
        return {
            "step": self._step,
            "samples_seen": progress.samples_seen,
            "chunks_done": progress.chunks_done,
            "merges_done": self._merges.done,
            "scaler": self._precision.scaler.state_dict(),
            "merge_every_chunks": self._session.config.merge_every_chunks,
            "chunks_alone": progress.chunks_done - self._alike_at,
            "val_step": None if self._known_loss is None else self._known_loss[0],
            "val_loss": None if self._known_loss is None else self._known_loss[1],
            "schedule": self._schedule.as_dict(),
            "mode": self._strategy.name,
            "world_size": self._strategy.place.world_size,
            **self._strategy.counters(),
            **({} if self._task.goal is None else {"goal": self._task.goal.counters()}),
            **({} if self._shares is None else self._shares.counters()),
            **({} if self._dial is None else self._dial.counters()),
        }

    @property
    def _last_step(self) -> float:
        """No step is made after this one; where lanes take from each other, only the host knows when all is done."""
        config = self._session.config
        if self._strategy.synchronised or not config.work_stealing:
            return self._total_steps
        return config.steps if config.steps is not None else math.inf

    @property
    def _has_reached_goal(self) -> bool:
        goal = self._task.goal
        return goal is not None and self._batches.between_chunks and goal.is_reached()

    def _report_goal(self) -> None:
        """Tells how far the goal is and how many steps the run will have made by then, at the pace so far."""
        progress = None if self._task.goal is None else self._task.goal.progress()
        if progress is None or self._strategy.place.rank != 0 or not self._batches.between_chunks:
            return
        share, text = progress
        total = None if share <= 0 else min(self._total_steps, max(self._step, math.ceil(self._step / share)))
        self._session.reporter.send(GoalProgress(total, text))

    def _expect(self) -> None:
        """Lays the rest of the schedule out over this batch and those that this lane may still expect."""
        samples = self._batches.expected
        if samples is not None:
            self._schedule = self._schedule.expecting(self._step, 1 + math.ceil(samples / self._batch.global_))

    @property
    def _total_steps(self) -> int:
        return self._schedule.ends

    def _plan_steps(self, plan: ChunkPlan) -> int:
        """Steps of this rank's lane: `steps`, or what the epochs come to, whichever is less."""
        config = self._session.config
        epochs = config.epochs if config.epochs is not None else (1 if config.steps is None else None)
        if epochs is None:
            return config.steps or 0
        start = self._session.start
        if start is not None and start.steps_left is not None:
            of_epochs = start.step + start.steps_left
        else:
            of_epochs = plan.lane_steps(epochs, self._strategy.lane, self._strategy.lanes, self._batch.global_)
        return of_epochs if config.steps is None else min(config.steps, of_epochs)


def _passed(every: int | None, before: int, step: int) -> bool:
    """Whether a multiple of `every` lies behind `before` and not behind `step`: of one step to the next, is `step`."""
    return every is not None and step // every > before // every
