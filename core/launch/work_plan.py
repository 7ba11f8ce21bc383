"""Work plan: the amount of work, known once the data is ready, and the config that a fallback trains."""

from __future__ import annotations

from collections.abc import Mapping

from core.checkpoints.restore_plan import RestorePlan
from core.checkpoints.store import Checkpoint
from core.config import RunConfig
from core.config.batch import Batch
from core.config.mode import Mode
from core.launch.mode import TORCH
from core.launch.resolved import ResolvedRun
from core.ledger.ledger import Ledger
from core.machine.devices import Device, device_texts
from core.protocol.messages import RankStart


def total_steps(run: ResolvedRun, ledger: Ledger, done: Mapping[int, int]) -> int | None:
    """Return the steps of the run's longest replica group: `steps` or those of its epochs, whichever is less.

    Args:
        run: The attempt's run.
        ledger: The samples that are left.
        done: Steps already made, by rank; 0 for others.
    """
    asked, steps_left = run.config.steps, _steps_left(run, ledger)
    if steps_left is None:
        return asked
    longest = max(done.get(group, 0) + left for group, left in enumerate(steps_left))
    return longest if asked is None else min(asked, longest)


def rank_starts(
    run: ResolvedRun, ledger: Ledger, checkpoint: Checkpoint | None, restore_plan: RestorePlan
) -> list[RankStart]:
    """Return the start of each rank.

    A single replica group counts all samples that the ledger holds. One that begins with weights of another group
    counts on from the highest count of any, as it does with steps.
    """
    steps_left, groups = _steps_left(run, ledger), run.replica_groups
    positions = {} if checkpoint is None else checkpoint.positions
    most = max((position.samples_seen for position in positions.values()), default=0)
    starts = []
    for rank, (copy, step) in enumerate(zip(restore_plan.copies, restore_plan.steps, strict=True)):
        own = restore_plan.same_groups or (groups > 1 and copy == str(rank))
        starts.append(
            RankStart(
                step=step,
                steps_left=None if steps_left is None else steps_left[ledger.setup.group_for(rank)],
                copy=copy,
                samples_seen=None if own else ledger.samples_trained if groups == 1 else most,
            )
        )
    return starts


def _steps_left(run: ResolvedRun, ledger: Ledger) -> list[int] | None:
    """Return the steps that each replica group has left in its epochs; None without an epoch limit."""
    epochs = run.config.epoch_limit
    if epochs is None:
        return None
    batch = run.batch.global_
    whole = _steps_of_whole_epochs(ledger, batch, epochs)
    begun = [0] * ledger.setup.groups
    for epoch in ledger.samples_left():
        for group, left in enumerate(epoch):
            begun[group] += -(-left // batch)
    return [sum(both) for both in zip(whole, begun, strict=True)]


def _steps_of_whole_epochs(ledger: Ledger, batch: int, epochs: int) -> list[int]:
    """Return each replica group's steps in all untouched epochs."""
    grid, groups, first = ledger.setup.grid, ledger.setup.groups, ledger.first_untouched_epoch
    # The owner of chunk i in epoch e is (i + e) mod groups, so a group trains the chunks of one residue of i in each
    # epoch, and of another one in the next. Its shares repeat after as many epochs as there are groups.
    of_residue = [sum(grid.count(i) for i in range(r, grid.chunks, groups)) for r in range(groups)]
    steps = [-(-share // batch) for share in of_residue]
    cycles, rest = divmod(max(0, epochs - first), groups)
    return [
        cycles * sum(steps) + sum(steps[(group - epoch) % groups] for epoch in range(first, first + rest))
        for group in range(groups)
    ]


def on_one_device(config: RunConfig, device: Device, batch: Batch) -> RunConfig:
    """Return the same run on one device: accumulation keeps the global batch, and with it the loss curve."""
    return config.replace(
        mode=Mode.SINGLE,
        devices=device_texts([device]),
        batch_size=batch.micro,
        grad_accum_steps=None,
        global_batch_size=batch.global_,
    )


def independent_on_all(config: RunConfig, batch: Batch) -> RunConfig:
    """Return the same run with an independent model on each device, at the same samples a step.

    The best copy is kept, since averaging copies that were trained apart is worse than any of them. Ranks that could
    not be connected are not synchronised either.
    """
    return config.replace(
        mode=Mode.INDEPENDENT,
        batch_size=batch.micro,
        grad_accum_steps=batch.accumulation,
        global_batch_size=None,
        merge_policy="best" if config.merge_policy == "average" else config.merge_policy,
        sync_every=None,
    )


def with_torchs_engine(config: RunConfig) -> RunConfig:
    """Return the same run with PyTorch's own engine in DeepSpeed's place, without settings that it lacks."""
    return config.replace(
        zero_engine=TORCH,
        deepspeed_config=None,
        offload_optimizer=config.offload_optimizer and config.zero_stage > 1,
        offload_parameters=config.offload_parameters and config.zero_stage == 3,
    )
