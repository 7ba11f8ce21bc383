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
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

from core.errors import RankdeckError
from core.fault_points import reach
from core.protocol import Claim, Grant, Merge, RankDone
from workers import checkpoint, random_state
from workers.batches import ChunkPlan, Indices, LaneBatches, StepBatch, saved_progress
from workers.commits import Commits
from workers.evaluation import Evaluation, to_device
from workers.merge import MergeRounds, merge
from workers.optimization import Optimization
from workers.precision import Precision
from workers.session import Session

_COMMIT: Final = 1
_STOP: Final = 2
_NONFINITE_LIMIT: Final = 50
_NONFINITE_CHECK_EVERY: Final = 10


class DivergedError(RankdeckError):
    """The loss has not been a number for many steps."""

    title = "The loss is no longer a number"


@dataclass(frozen=True, slots=True)
class Task:
    """What a recipe trains.

    Attributes:
        model: On any device; the trainer moves it.
        batch: CPU tensors of training samples by their indices, shape (n,): a tensor, or a tuple, list or dict.
        loss: Mean loss of the model over such a batch, a tensor without dimensions. Call the model it is given,
            not one's own: it may be wrapped.
        val_batch: As `batch`, for held-out samples; None measures no validation loss.
        sample: Text that the model writes, shown at each evaluation; called on rank 0 in evaluation mode.
        optimization: The update rule.
        tokens_per_sample: For the throughput in tokens.
        val_batches: Micro-batches of held-out samples that one evaluation measures at most.
        sample_prompt: What the sampled text was asked to go on from, for showing.
    """

    model: nn.Module
    batch: Callable[[Indices], Any]
    loss: Callable[[nn.Module, Any], Tensor]
    val_batch: Callable[[Indices], Any] | None = None
    sample: Callable[[nn.Module], str] | None = None
    optimization: Optimization = field(default_factory=Optimization)
    tokens_per_sample: int = 1
    val_batches: int = 16
    sample_prompt: str = ""


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
        self._precision = Precision(config.precision, self._device)
        self._model = task.model.to(self._device)
        self._optimizer = task.optimization.optimizer(self._strategy, self._model, config.lr)
        self._wrapped = self._strategy.wrap(self._model)
        self._parameters = [p for p in self._model.parameters() if p.requires_grad]
        plan = ChunkPlan(session.data.samples, config.samples_per_block, config.dataset_chunk_size, config.seed)
        self._batch = session.batch
        self._batches = LaneBatches(
            plan,
            self._claim,
            self._batch.global_,
            self._batch.micro,
            self._strategy.lane_rank,
            self._strategy.lane_size,
        )
        self._total_steps = self._plan_steps(plan)
        self._evaluation = self._make_evaluation()
        self._merges = MergeRounds(config.merge_policy, config.merge_every_chunks, self._strategy.synchronised)
        self._commits = Commits(session.reporter, session.inbox)
        self._step = 0
        self._done = False
        self._val_loss: tuple[int, float] | None = None
        self._nonfinite = torch.zeros((), dtype=torch.int64, device=self._device)
        self._loss = torch.zeros((), device=self._device)
        self._boundary_ended = 0.0

    def fit(self) -> None:
        """Trains from where the newest generation stands until done or stopped, and stays until the host lets go."""
        self._warm_up()
        self._restore()
        self._session.phase("ready")
        finished = self._train()
        self._strategy.settle()
        if finished:
            self._evaluate()
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
        while self._step < self._total_steps:
            # Asked before a step, not after one, so that a run resumed between commit and merge merges first.
            if self._merges.due(self._batches.progress.chunks_done) and self._wait_for_merge():
                return False
            self._boundary_ended = time.perf_counter()
            batch = self._batches.next(self._step + 1)
            if batch is None:
                return True
            self._train_step(batch)
            reach("mid_chunk", self._step)
            if self._boundary():
                return False
        return True

    def _train_step(self, batch: StepBatch) -> None:
        self._step += 1
        lr = self._task.optimization.lr(self._step, self._total_steps, self._session.config.lr)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        loss = torch.zeros((), device=self._device)
        last = len(batch.micro_batches) - 1
        for number, micro in enumerate(batch.micro_batches):
            inputs = to_device(self._task.batch(micro.indices), self._device)
            with self._strategy.accumulate(self._wrapped, last=number == last):
                with self._precision.forward():
                    mean = self._task.loss(self._wrapped, inputs)
                torch.autograd.backward(self._precision.scaler.scale(mean * micro.weight))
            loss += mean.detach().float() * (len(micro.indices) if batch.samples else 0)
        self._precision.scaler.unscale_(self._optimizer)
        grad_norm = self._strategy.clip_grad_norm(self._parameters, self._task.optimization.clip_norm)
        self._precision.scaler.step(self._optimizer)
        self._precision.scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        self._report(batch, loss / batch.samples if batch.samples else None, lr, grad_norm)

    def _report(self, batch: StepBatch, loss: Tensor | None, lr: float, grad_norm: Tensor) -> None:
        if self._device.type == "cuda" and self._step == self._session.first_step:
            torch.cuda.synchronize(self._device)  # else the first steps' times are those of queueing only
        step_time_s = time.perf_counter() - self._boundary_ended
        tokens = self._task.tokens_per_sample
        self._session.reporter.log(
            self._step,
            loss=loss,
            lr=lr,
            grad_norm=grad_norm.detach(),
            tokens_per_s=batch.samples * tokens / step_time_s,
            samples_per_s=batch.samples / step_time_s,
            step_time_s=step_time_s,
            data_wait_s=batch.wait_s,
            sync_wait_s=self._strategy.sync_wait_s(self._wrapped),
            device_mem_bytes=self._device_memory(),
            tokens_seen=self._batches.progress.samples_seen * tokens,
            epoch=batch.epoch,
            block_id=batch.block_id,
            chunk_id=batch.chunk_id,
        )
        self._report_chunks(batch, loss)
        self._check_finite(loss)
        if self._step == self._session.first_step:
            self._session.phase("first step")

    def _report_chunks(self, batch: StepBatch, loss: Tensor | None) -> None:
        place = self._strategy.place
        for chunk in batch.finished:
            owner = self._batches.plan.owner(chunk.epoch, chunk.block_id, chunk.chunk_id, place.world_size)
            if owner == place.rank:
                self._session.reporter.event(
                    "chunk_complete",
                    step=self._step,
                    block_id=chunk.block_id,
                    chunk_id=chunk.chunk_id,
                    epoch=chunk.epoch,
                    gpu_id=place.rank,
                    optimizer_step=chunk.optimizer_step,
                    samples=chunk.samples,
                    loss=None if loss is None else float(loss),
                )

    def _check_finite(self, loss: Tensor | None) -> None:
        """Counts steps in a row whose loss is no number, on the device; looks at the count now and then."""
        if loss is None:
            return
        self._nonfinite = torch.where(torch.isfinite(loss), 0, self._nonfinite + 1)
        if self._step % _NONFINITE_CHECK_EVERY == 0 and int(self._nonfinite) >= _NONFINITE_LIMIT:
            raise DivergedError(
                f"For {int(self._nonfinite)} steps up to step {self._step} the loss was not a finite number.",
                "Lower the learning rate or lengthen the warm-up, then resume from the last commit or start again.",
            )

    def _device_memory(self) -> int | None:
        return torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else None

    # the boundary after a step

    def _boundary(self) -> bool:
        """Everything between two steps.

        Returns:
            True when the run is to stop here.
        """
        inbox, config = self._session.inbox, self._session.config
        inbox.poll()
        self._note_commits()
        agreed = self._strategy.agree(self._wish())
        if config.eval_every is not None and self._step % config.eval_every == 0:
            self._evaluate()
        if agreed == _STOP:
            return True
        if agreed == _COMMIT or self._commit_is_due():
            self._commit("asked" if agreed else "steps")
        return False

    def _wish(self) -> int:
        """What this rank knows the host wants, as a flag; a wish for a commit is voiced once."""
        inbox, every_s = self._session.inbox, self._session.config.checkpoint_every_s
        by_clock = every_s is not None and self._strategy.place.rank == 0 and self._commits.age_s >= every_s
        if inbox.stop_asked:
            return _STOP
        if inbox.commit_asked or by_clock:
            inbox.commit_asked = False
            self._commits.reset_age()
            return _COMMIT
        return 0

    def _commit_is_due(self) -> bool:
        every = self._session.config.checkpoint_every_steps
        if every is None:
            return False
        if self._strategy.synchronised:
            return self._step % every == 0  # the same answer on every rank
        since = self._commits.last.step if self._commits.last is not None else self._session.first_step - 1
        return self._step - since >= every

    def _commit(self, reason: str, *, surely: bool = False) -> None:
        begin = self._commits.begin_surely if surely else self._commits.begin
        begin(
            self._step,
            reason,
            lambda: checkpoint.take_part(self._strategy, self._model, self._optimizer, self._step, self._counters()),
            lambda generation: self._batches.position(self._step, generation),
            self._measured(),
        )

    def _is_committed(self) -> bool:
        """This very step is in a part of this attempt already, with its validation loss.

        If that generation should fail after all, the host asks for another.
        """
        last = self._commits.last
        return last is not None and last.step == self._step and last.val_loss == self._measured()

    def _measured(self) -> float | None:
        """The validation loss of this very step, if it was measured and is a number."""
        measured = self._val_loss[1] if self._val_loss is not None and self._val_loss[0] == self._step else None
        return measured if measured is not None and math.isfinite(measured) else None

    def _note_commits(self) -> None:
        while self._session.inbox.committed:
            self._batches.committed(self._session.inbox.committed.pop(0))

    def _evaluate(self) -> None:
        """Measures the validation loss at this step, unless that has been done."""
        if self._evaluation is None or (self._val_loss is not None and self._val_loss[0] == self._step):
            return
        val_loss = self._evaluation.measure(self._model, self._strategy)
        self._val_loss = (self._step, val_loss)
        if self._strategy.lane_rank == 0:
            self._session.reporter.event("eval", step=self._step, val_loss=val_loss)
        if self._strategy.place.rank == 0 and self._task.sample is not None:
            self._session.reporter.event(
                "sample", step=self._step, prompt=self._task.sample_prompt, text=self._sampled_text(self._task.sample)
            )

    def _sampled_text(self, sample: Callable[[nn.Module], str]) -> str:
        with random_state.untouched(self._device), torch.no_grad():
            self._model.eval()
            try:
                with self._precision.forward():
                    return sample(self._model)
            finally:
                self._model.train()

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

    def _warm_up(self) -> None:
        """One forward and backward pass that leaves no trace but DDP's final order of buckets.

        DDP rebuilds its buckets after the first pass. A resumed run has a first pass where the run it continues had
        none; with more than two ranks gloo would then add the same numbers in another order. Memory that does not
        suffice and connections that do not work also show here.
        """
        place = self._strategy.place
        buffers = [(buffer, buffer.clone()) for buffer in self._model.buffers()]
        with random_state.untouched(place.device):
            indices = self._batches.plan.order(0, 0, 0, 0, 1)
            with self._precision.forward():
                loss = self._task.loss(self._wrapped, to_device(self._task.batch(indices), self._device))
            torch.autograd.backward(loss * 0.0)
        self._optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)

    def _restore(self) -> None:
        random_state.seed_everything(self._session.config.seed + 1 + self._strategy.place.rank)
        folder = self._session.resume_folder
        if folder is not None:
            counters = checkpoint.load_part(folder, self._strategy, self._model, self._optimizer)
            self._step = int(counters["step"])
            self._batches.progress = saved_progress(counters)
            self._merges.done = int(counters["merges_done"])
            if counters.get("scaler"):
                self._precision.scaler.load_state_dict(counters["scaler"])
        self._session.first_step = self._step + 1

    def _counters(self) -> dict[str, Any]:
        progress = self._batches.progress
        return {
            "step": self._step,
            "samples_seen": progress.samples_seen,
            "chunks_done": progress.chunks_done,
            "merges_done": self._merges.done,
            "scaler": self._precision.scaler.state_dict(),
            "mode": self._strategy.name,
            "world_size": self._strategy.place.world_size,
        }

    def _plan_steps(self, plan: ChunkPlan) -> int:
        """Steps of this rank's lane: `steps`, or what the epochs come to, whichever is less."""
        config = self._session.config
        epochs = config.epochs if config.epochs is not None else (1 if config.steps is None else None)
        if epochs is None:
            return config.steps or 0
        of_epochs = plan.lane_steps(epochs, self._strategy.lane, self._strategy.lanes, self._batch.global_)
        return of_epochs if config.steps is None else min(config.steps, of_epochs)

    def _make_evaluation(self) -> Evaluation | None:
        held_out = self._session.data.val_samples
        if self._task.val_batch is None or held_out < 1:
            return None
        micro = self._batch.micro
        return Evaluation(
            held_out, self._task.val_batches * micro, micro, self._task.val_batch, self._task.loss, self._precision
        )
