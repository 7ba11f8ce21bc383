"""Run context: the devices, dataset and checkpoints a host must know before it can plan.

Gathering it is slow, so it is done off the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.checkpoints.store import Checkpoint, CheckpointStore, DamagedCheckpoint
from core.config import RunConfig
from core.data.dataset import identify
from core.estimate.probe import known_baselines
from core.host.commits.ledger_keeper import LedgerKeeper
from core.launch.commit_charge import check_commit
from core.launch.resolved import ResolvedRun, resolve
from core.machine.devices.device import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import Platform, this_platform
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the host learns once, before the first attempt.

    Attributes:
        run: What was asked, decided on this machine.
        checkpoint: What the run continues from; None for a new run.
        damaged: Newer checkpoints that cannot be used.
        keeper: The ledger, to be made once the data is ready.
    """

    run: ResolvedRun
    machine: Platform
    checkpoint: Checkpoint | None
    damaged: tuple[DamagedCheckpoint, ...]
    keeper: LedgerKeeper
    monitor: DeviceMonitor


def gather_context(
    store: RunStore,
    run_id: str,
    config: RunConfig,
    recipe: Recipe,
    monitor: DeviceMonitor,
    checkpoints: CheckpointStore,
    others: Sequence[Device] = (),
) -> RunContext:
    """Looks at everything once; removes checkpoints that were never finished. `others`: GPUs of other machines.

    Raises:
        ConfigError: The devices are not there.
        DatasetError: The dataset cannot be read.
        PreflightError: Windows has too little memory and page file for these ranks.
        NewerVersionError: A newer Rankdeck made the newest checkpoint.
    """
    machine = this_platform()
    run = resolve(config, recipe, [*monitor.devices(), *others], machine)
    baselines = known_baselines(machine)
    check_commit(run.devices, machine.commit_free, None if baselines is None else baselines.least_commit_bytes)
    dataset = identify(config.dataset_file, config.data_files)
    keeper = LedgerKeeper(store.ledger, run.config, dataset.as_dict(), run_id)
    checkpoint, damaged = checkpoints.newest_valid(keeper.committed_checkpoint())
    checkpoints.remove_unfinished()
    return RunContext(run, machine, checkpoint, tuple(damaged), keeper, monitor)


def damaged_alert(bad: DamagedCheckpoint, used: Checkpoint | None) -> dict[str, Any]:
    """The fields of the alert about a checkpoint that cannot be used."""
    if bad.diverged_at is not None:
        kind, what, otherwise = "checkpoint_diverged", "passed over", "The run starts with fresh weights."
        cause = f"Its weights are not finite: training had diverged at step {bad.diverged_at}."
    else:
        kind, what, otherwise = "checkpoint_damaged", "damaged", "The run starts from the beginning."
        cause = bad.reason
    return {
        "kind": kind,
        "title": f"Checkpoint {bad.number} is {what}",
        "cause": cause,
        "next_step": f"The run continues from checkpoint {used.number}, step {used.step}." if used else otherwise,
        "checkpoint": bad.number,
    }
