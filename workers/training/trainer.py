"""The training loop of every recipe, in every mode.

    for each optimizer step:  batch → forward, backward (micro-batches) → update → report
    between two steps:        synchronise → agree on what the host wants → evaluate → checkpoint → stop

`Trainer._train` is that loop; `boundary` is all that happens between two steps. What a mode does differently stands
behind two small interfaces (`workers.strategies`): a `Strategy` knows the ranks, a `Replica` is the model as this rank
trains it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor

from core.fault_points import reach
from workers.host_link.failures import is_out_of_memory
from workers.optim import seeding
from workers.training import checkpoint
from workers.training.batches import MicroBatch, StepBatch
from workers.training.boundary import Boundary
from workers.training.evaluation import to_device
from workers.training.horizon import Horizon
from workers.training.memory_guard import MemoryGuard
from workers.training.non_finite import NonFiniteGuard
from workers.training.rank_checkpoints import fresh_seed, taken_up
from workers.training.session import Session
from workers.training.setup import set_up
from workers.training.step_reports import Step, StepReports
from workers.training.step_start import StepStart
from workers.training.task import LossAndMetrics, StepSamples, Task
from workers.training.warm_up import WarmUp


class Trainer:
    """Trains a task under a session whose data is ready; a recipe calls `fit` and nothing else."""

    def __init__(self, session: Session, task: Task) -> None:
        self._session = session
        self._task = task
        self._setup = setup = set_up(session, task)
        self._replica, self._batches, self._precision = setup.replica, setup.batches, setup.precision
        self._horizon = Horizon(setup)
        self._warm_up = WarmUp(setup)
        self._start = StepStart(setup.replica.model, setup.device)
        self._memory = MemoryGuard(setup, self._start)
        self._guard = NonFiniteGuard(setup, self._start, self._memory)
        self._boundary = Boundary(setup, self._horizon, self._guard.settle)
        self._reports = StepReports(setup)
        self._loading_s = 0.0

    def fit(self) -> None:
        """Train from the newest checkpoint until done or stopped, and stay until the host lets this rank go."""
        self._warm_up.run()
        self._replica.sync_wait_s()  # what the warm-up has waited does not count
        self._resume()
        self._session.phase("ready")
        finished = self._train()
        self._boundary.finish(finished)

    def _train(self) -> bool:
        """Steps until the work is done (True) or the host wants a stop (False)."""
        session, boundary = self._session, self._boundary
        if boundary.before_first_step():
            return False
        while not self._horizon.is_reached:
            began, self._loading_s = time.perf_counter(), 0.0

            # Batch: the next samples of this replica group's stream. Their order depends on seed, epoch and chunk
            # alone, so it is the same for any number of ranks and after any resume (docs/decisions/0003).
            batch = self._batches.next(session.step + 1)
            if batch is None:
                break
            session.step += 1
            lr = self._horizon.lr()
            self._replica.set_lr(lr)

            means: dict[str, Tensor] = {}
            sync: dict[str, float | None] = {}
            grad_norm, waited_s = torch.zeros(()), 0.0
            if self._is_wanted(batch):
                batch, means, grad_norm = self._step(batch)
                sync, waited_s = self._sync_costs()

            # Report: losses stay tensors until the reporter's thread reads them, dozens of times a second. Reading
            # one here would make every step wait for the GPU; putting it on a queue takes about 1 µs.
            time_s = time.perf_counter() - began + waited_s
            data_wait_s = batch.wait_s + self._loading_s
            self._reports.step(Step(session.step, batch, means, lr, grad_norm, time_s, data_wait_s, sync))
            reach("mid_chunk", session.step)

            # Boundary: evaluate, take a checkpoint, synchronise, stop.
            if boundary.after_step():
                return False
        return boundary.last_rounds()

    def _step(self, batch: StepBatch) -> tuple[StepBatch, dict[str, Tensor], Tensor]:
        """One optimizer step, in smaller micro-batches if memory runs out.

        Returns:
            The batch as it was cut, means of the metrics over this rank's share, and the gradient's norm.
        """
        self._start.keep()
        try:
            while True:
                # Forward and backward, one micro-batch after the other: gradients add up.
                means = self._forward_backward(batch)
                # Update: the gradient is clipped, the optimizer steps. Where fp16 overflowed, or the loss or the
                # gradient is not finite, it does not.
                grad_norm = self._update(batch).detach()
                if not self._memory.is_short:
                    return batch, means, grad_norm
                batch = self._memory.smaller(batch)
        except Exception as error:
            if is_out_of_memory(error):
                raise self._memory.refusal() from error
            raise

    def _update(self, batch: StepBatch) -> Tensor:
        self._guard.settle()
        if not self._guard.is_late or self._memory.is_short_here:
            return self._replica.update(partial(self._guard.may_step, batch))
        norm = self._replica.update_if_finite()
        self._guard.look_later(batch, norm)
        return norm

    def _forward_backward(self, batch: StepBatch) -> dict[str, Tensor]:
        """Leave the gradient of the whole batch in the weights; means of the metrics over this rank's share."""
        self._guard.begin_step()
        self._memory.begin_step()
        totals: dict[str, Tensor] = {}
        last = len(batch.micro_batches) - 1
        try:
            for number, micro in enumerate(batch.micro_batches):
                metrics = self._pass(micro, last=number == last)
                for name, metric in metrics.items():
                    totals[name] = totals.get(name, 0) + metric.float() * (len(micro.indices) if batch.samples else 0)
        except Exception as error:
            self._memory.note(error)
        if self._memory.is_short_here:
            self._memory.give_back()
            self._pass(self._memory.single_sample(batch), last=True)
            return {}
        return {name: total / batch.samples for name, total in totals.items()} if batch.samples else {}

    def _pass(self, micro: MicroBatch, *, last: bool) -> Mapping[str, Tensor]:
        shares = self._setup.shares
        # Gradients are all-reduced in the last micro-batch only (DDP's `no_sync` before it): once a step.
        with self._replica.micro_batch(last=last), self._setup.training_pass(len(micro.indices)):
            began = time.perf_counter()
            samples = self._task.batch(micro.indices)
            self._loading_s += time.perf_counter() - began
            inputs = to_device(samples, self._setup.device)
            # Only forward passes are timed: in a backward pass a fast rank waits for the slow one's gradients.
            with nullcontext() if shares is None else shares.timed(micro), self._precision.forward():
                returned = LossAndMetrics.of(self._task.loss(self._replica.module, inputs))
            # m samples of a batch of n on W ranks count m · W / n, so the mean over ranks is the mean over n.
            loss = self._guard.mark(returned.loss, returned.loss * micro.weight)
            self._replica.backward(loss, last=last)
        return returned.metrics

    def _is_wanted(self, batch: StepBatch) -> bool:
        """Let the recipe make what the step needs; False when it wants no update."""
        if self._task.before_step is None:
            return True
        with torch.no_grad(), self._precision.forward():
            return self._task.before_step(StepSamples(batch.epoch, batch.indices, batch.own))

    def _sync_costs(self) -> tuple[dict[str, float | None], float]:
        """Costs of synchronising by metric name, and seconds of them before this step began.

        A round of local SGD lies between two steps; its wait counts as the next step's.
        """
        if self._setup.local_sgd is None:
            return {"sync_wait_s": self._replica.sync_wait_s()}, 0.0
        costs = self._setup.local_sgd.take_costs()
        return dict(costs), costs["sync_wait_s"]

    def _resume(self) -> None:
        """Load weights, optimizer, generators and counters; at the start of a run only the seed is set."""
        session, setup, start = self._session, self._setup, self._session.start
        rank, folder = setup.strategy.place.rank, session.resume_folder
        seeding.seed_everything(fresh_seed(session.config.seed, rank, start.step if start else 0))
        counters = None
        if folder is not None:
            saved = checkpoint.load_part(folder, setup.strategy, setup.replica, start.copy if start else "")
            counters = taken_up(saved, start, rank)
            self._boundary.checkpoints.restore(counters)
        if setup.shares is not None:
            with self._warm_up.without_trace():
                setup.shares.begin(counters or {}, session.step, self._warm_up.pass_alone)
        if setup.local_sgd is not None:
            setup.local_sgd.begin(counters, session.step, setup.batches.progress.samples_seen)
        session.first_step = session.step + 1
        self._horizon.report_goal()
