"""How much work a run is, known once the data is ready; and the config that a fallback goes on with."""

from __future__ import annotations

from core.chunk_grid import ChunkGrid
from core.config import RunConfig
from core.config.batch import Batch
from core.devices import Device, device_texts
from core.host.ledger_keeper import epochs_of
from core.launch_plan import LaunchPlan
from core.preflight import batch_of


def total_steps(config: RunConfig, plan: LaunchPlan, samples: int) -> int | None:
    """Optimizer steps of the run (of its longest lane): `steps`, or what the epochs come to, whichever is less."""
    epochs = epochs_of(config)
    if epochs is None:
        return config.steps
    grid = ChunkGrid(samples, config.samples_per_block, config.dataset_chunk_size)
    # Owner of chunk i in epoch e is (i + e) mod lanes, so a lane trains the chunks of one residue of i in each epoch.
    of_residue = [sum(grid.count(i) for i in range(r, grid.chunks, plan.lanes)) for r in range(plan.lanes)]
    batch = batch_of(config, plan.world_size, plan.mode).global_
    steps = [-(-share // batch) for share in of_residue]
    cycles, rest = divmod(epochs, plan.lanes)
    longest = max(
        cycles * sum(steps) + sum(steps[(lane - epoch) % plan.lanes] for epoch in range(rest))
        for lane in range(plan.lanes)
    )
    return longest if config.steps is None else min(config.steps, longest)


def on_one_device(config: RunConfig, device: Device, batch: Batch) -> RunConfig:
    """The same run on one device: the global batch stays, and with it the loss curve; accumulation makes up for it."""
    return config.replace(
        mode="single",
        devices=device_texts([device]),
        batch_size=batch.micro,
        grad_accum_steps=None,
        global_batch_size=batch.global_,
    )
