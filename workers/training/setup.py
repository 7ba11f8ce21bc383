"""Training setup of one rank: the model on its device, its replica and its batches, made once before the first step."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from core.fault_points import reach
from core.protocol.messages import Claim, Grant
from workers.host_link.reporter import Reporter
from workers.optim.precision import Precision, agreed
from workers.strategies import Replica, Strategy
from workers.training import checkpoint
from workers.training.balance import BatchShares, make_batch_shares
from workers.training.batches import ChunkPlan, GroupBatches
from workers.training.compiled import SwitchedForward
from workers.training.independent.local_sgd import LocalSgd, make_local_sgd
from workers.training.session import Session
from workers.training.task import Task
from workers.training.training_mode import begin_training, evaluating_parts


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """The objects that a rank trains with.

    Attributes:
        model: The recipe's own, on its device.
        forward: Switches between compiled and plain passes; None where nothing is compiled.
        replica: `model` as the mode trains it.
        shares: Load balancing; None where all ranks get equal shares.
        local_sgd: Rounds of local SGD; None in modes without.
    """

    session: Session
    task: Task
    model: nn.Module
    forward: SwitchedForward | None
    precision: Precision
    replica: Replica
    batches: GroupBatches
    shares: BatchShares | None
    local_sgd: LocalSgd | None

    @property
    def strategy(self) -> Strategy:
        return self.session.strategy

    def training_pass(self, samples: int) -> AbstractContextManager[None]:
        """The context of a training pass over this number of samples."""
        return nullcontext() if self.forward is None else self.forward.of(samples)

    @property
    def device(self) -> torch.device:
        return self.session.strategy.place.device


def set_up(session: Session, task: Task) -> TrainingSetup:
    """Put a task's model on its device and behind the session's mode, once the data is ready; every rank calls it."""
    strategy, config = session.strategy, session.config
    device, is_first = strategy.place.device, strategy.place.rank == 0
    begin_training(task.model)
    precision = Precision(agreed(config.precision, device, strategy.group_size, strategy.total), device)
    # A model that will be sharded stays on the CPU until its blocks are cut: whole, it may not fit on the device.
    model = task.model if strategy.forward_is_collective else task.model.to(device)
    if is_first:
        _report_model(session.reporter, model)
    if session.resume_folder is not None:
        strategy.recall(checkpoint.saved_counters(session.resume_folder))
    forward = SwitchedForward(model, strategy, session.batch.micro) if config.torch_compile else None
    replica = strategy.replicate(model, task.optimization, config.lr, precision)
    if is_first and (figures := strategy.figures()):
        session.reporter.event("exchange", **figures)
    batches = _batches(session, task)
    shares = make_batch_shares(config.balance, strategy, batches, session.reporter)
    local_sgd = make_local_sgd(strategy, replica)
    return TrainingSetup(session, task, model, forward, precision, replica, batches, shares, local_sgd)


def _report_model(reporter: Reporter, model: nn.Module) -> None:
    """Report a whole model's size, and parts of it in evaluation mode."""
    sizes = [(p.numel(), p.numel() * p.element_size(), p.requires_grad) for p in model.parameters()]
    reporter.event(
        "model",
        parameters=sum(numel for numel, _, _ in sizes),
        trainable=sum(numel for numel, _, trained in sizes if trained),
        trainable_bytes=sum(size for _, size, trained in sizes if trained),
    )
    if parts := evaluating_parts(model):
        named = parts[0] if len(parts) == 1 else f"{parts[0]} and {len(parts) - 1} more"
        reporter.event(
            "alert",
            kind="evaluation_mode",
            title="Part of the model is in evaluation mode",
            cause=f"{named}: its weights are trained, but dropout and gradient checkpointing do nothing there.",
            next_step="If you did not intend that, call train() on the model in the recipe, before run.fit.",
        )


def _batches(session: Session, task: Task) -> GroupBatches:
    config, strategy, batch = session.config, session.strategy, session.batch
    sizes = (config.samples_per_block, config.dataset_chunk_size)
    return GroupBatches(
        ChunkPlan(session.data.samples, *sizes, config.seed, task.shuffled),
        partial(_claim, session),
        batch.global_,
        batch.micro,
        strategy.group_rank,
        strategy.group_size,
        alike=strategy.micro_batches_alike,
    )


def _claim(session: Session, sequence: int) -> Grant:
    reach("before_claim", session.step)
    session.reporter.send(Claim(sequence))
    while True:
        grant = session.inbox.wait_for(Grant)
        if grant.sequence == sequence:
            return grant
