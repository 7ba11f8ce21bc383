"""How much work a run is, known once the data is ready; and the config that a fallback goes on with."""

from __future__ import annotations

from collections.abc import Mapping

from core.config import RunConfig
from core.config.batch import Batch
from core.devices import Device, device_texts
from core.host.ledger_keeper import epochs_of
from core.launch_plan import LaunchPlan
from core.ledger import Ledger
from core.preflight import batch_of


def total_steps(config: RunConfig, plan: LaunchPlan, ledger: Ledger, done: Mapping[int, int]) -> int | None:
    """Optimizer steps of the run (of its longest lane): `steps`, or what the epochs come to, whichever is less.

    Args:
        config: What this attempt trains.
        plan: Its ranks.
        ledger: What is left to train.
        done: Steps that the weights it goes on from have made, by rank; a rank that is not named has made none.
    """
    epochs = epochs_of(config)
    if epochs is None:
        return config.steps
    batch = batch_of(config, plan.world_size, plan.mode).global_
    whole = _steps_of_whole_epochs(ledger, batch, epochs)
    longest = max(
        done.get(lane, 0) + whole[lane] + sum(-(-left // batch) for left in ledger.samples_left(lane))
        for lane in range(ledger.lanes)
    )
    return longest if config.steps is None else min(config.steps, longest)


def _steps_of_whole_epochs(ledger: Ledger, batch: int, epochs: int) -> list[int]:
    """Each lane's steps in all epochs of which nothing is trained yet."""
    grid, lanes, first = ledger.grid, ledger.lanes, ledger.first_untouched_epoch
    # Owner of chunk i in epoch e is (i + e) mod lanes, so a lane trains the chunks of one residue of i in each epoch.
    of_residue = [sum(grid.count(i) for i in range(r, grid.chunks, lanes)) for r in range(lanes)]
    steps = [-(-share // batch) for share in of_residue]
    cycles, rest = divmod(max(0, epochs - first), lanes)
    return [
        cycles * sum(steps) + sum(steps[(lane - epoch) % lanes] for epoch in range(first, first + rest))
        for lane in range(lanes)
    ]


def on_one_device(config: RunConfig, device: Device, batch: Batch) -> RunConfig:
    """The same run on one device: the global batch stays, and with it the loss curve; accumulation makes up for it."""
    return config.replace(
        mode="single",
        devices=device_texts([device]),
        batch_size=batch.micro,
        grad_accum_steps=None,
        global_batch_size=batch.global_,
    )
