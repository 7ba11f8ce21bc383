"""Attempt launch: plans an attempt's ranks, and writes the files that they and the person read about it."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

import core
from core.checkpoints.restore_plan import RestorePlan, plan_restore, policy_for
from core.checkpoints.store import Checkpoint, DamagedCheckpoint
from core.config import RunConfig
from core.config.config_file import to_toml
from core.config.distributed import LaunchMethod
from core.data.dataset import identify
from core.errors import StateFileError
from core.files.atomic import read_json, write_atomic
from core.host.commits.ledger_keeper import LedgerKeeper
from core.host.services import HostServices
from core.launch.commit_charge import check_commit
from core.launch.plan import LaunchSite, RankCommand, plan_launch
from core.launch.resolved import ResolvedRun, resolve
from core.launch.seats import NodeSeats
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import RankNames, device_label
from core.machine.packages import recorded_versions
from core.machine.platform import Platform, free_port, rendezvous_folder, this_platform
from core.measure.estimate.probe import known_baselines
from core.protocol.rank_context import CONFIG_FILE
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore

TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class AttemptLaunch:
    """One attempt, ready to be spawned; `rendezvous` is the file at which its ranks meet, removed after it."""

    run: ResolvedRun
    context: RunContext
    commands: tuple[RankCommand, ...]
    restore_plan: RestorePlan
    rendezvous: Path


async def prepare_launch(
    services: HostServices,
    run: ResolvedRun,
    context: RunContext,
    *,
    number: int,
    halvings: int,
    restarts: int,
    port: int,
    fell_back: bool,
) -> AttemptLaunch:
    """Plan an attempt, and let the listener expect its ranks; `fell_back`: the last one trained in a lesser way."""
    run_dir, checkpoint = services.store.dir, context.checkpoint
    launcher, seats = services.launcher, services.seats
    token = secrets.token_urlsafe(TOKEN_BYTES)
    rendezvous = rendezvous_folder(run_dir) / f".rendezvous-{number}-{secrets.token_hex(4)}"
    site = LaunchSite(
        run_dir=run_dir,
        attempt=number,
        rendezvous=rendezvous,
        port=port,
        token=token,
        checkpoint=None if checkpoint is None else checkpoint.folder,
        python=sys.executable,
        host_pid=os.getpid() if launcher is None else 0,  # else no rank is its child
        halvings=halvings,
        restarts=restarts,
        master_port=free_port() if run.recipe.self_contained else 0,
        launch_method="spawn" if launcher is None else launcher.method,
        seats=seats,
    )
    commands = plan_launch(run, site)
    services.listener.expect_ranks(number, run.world_size, token)
    environment = orjson.dumps(
        describe_environment(context.machine, run, commands, context.monitor.driver, number, site.launch_method, seats),
        option=orjson.OPT_INDENT_2,
    )
    await services.on_disk(write_atomic, services.store.environment, environment)
    devices = () if checkpoint is None else checkpoint.devices
    names = RankNames(devices, {device.uuid: device_label(device) for device in run.devices})
    restore_plan = await services.on_disk(_plan_restore, checkpoint, run, fell_back, names)
    await services.on_disk(write_atomic, run_dir / CONFIG_FILE, to_toml(run.config))
    return AttemptLaunch(run, context, commands, restore_plan, rendezvous)


def _plan_restore(checkpoint: Checkpoint | None, run: ResolvedRun, fell_back: bool, names: RankNames) -> RestorePlan:
    if run.recipe.self_contained:
        positions = {} if checkpoint is None else checkpoint.positions
        steps = tuple(positions[rank].step if rank in positions else 0 for rank in range(run.world_size))
        return RestorePlan(("",) * run.world_size, steps)
    synchronise = run.replica_groups > 1 and run.config.sync_every is not None
    policy = policy_for(run.config.merge_policy, fell_back)
    return plan_restore(checkpoint, run.mode, run.world_size, policy, synchronise=synchronise, name=names.short)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Facts that the host gathers once, before the first attempt; `keeper` makes the ledger once the data is ready."""

    run: ResolvedRun
    machine: Platform
    checkpoint: Checkpoint | None
    damaged: tuple[DamagedCheckpoint, ...]
    keeper: LedgerKeeper
    monitor: DeviceMonitor


def gather_context(
    services: HostServices, run_id: str, config: RunConfig, recipe: Recipe, monitor: DeviceMonitor
) -> RunContext:
    """Look at everything once and remove unfinished checkpoints.

    Raises:
        ConfigError: The devices are not there.
        DatasetError: The dataset cannot be read.
        PreflightError: Windows has too little memory and page file for these ranks.
        NewerVersionError: A newer Rankdeck made the newest checkpoint.
    """
    store, checkpoints, machine = services.store, services.checkpoints, this_platform()
    others = () if services.seats is None else services.seats.gpus
    run = resolve(config, recipe, [*monitor.devices(), *others], machine)
    if note := run.note_on(_checked(store)):
        run = replace(run, device_notes=(*run.device_notes, note))
    baselines = known_baselines(machine)
    check_commit(run.devices, machine.commit_free, None if baselines is None else baselines.least_commit_bytes)
    dataset = identify(config.dataset_file, config.data_files)
    keeper = LedgerKeeper(store.ledger, run.config, dataset.as_dict(), run_id)
    checkpoint, damaged = checkpoints.newest_valid(keeper.committed_checkpoint())
    checkpoints.remove_unfinished()
    return RunContext(run, machine, checkpoint, tuple(damaged), keeper, monitor)


def _checked(store: RunStore) -> object:
    """Return the decision of the check before the first attempt; None for later ones or without a record of it."""
    try:
        return read_json(store.resolved) if store.stored_state().attempt <= 1 and store.resolved.exists() else None
    except StateFileError:
        return None


def damaged_alert(bad: DamagedCheckpoint, used: Checkpoint | None) -> dict[str, Any]:
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


def describe_environment(
    machine: Platform,
    run: ResolvedRun,
    commands: Sequence[RankCommand],
    driver: str | None,
    attempt: int,
    method: LaunchMethod,
    seats: NodeSeats | None = None,
) -> dict[str, Any]:
    """Contents of `environment.json`: versions, devices and system, from package metadata, without importing torch."""
    place = run.distributed(0).replace(launch_method=method)
    return {
        "written": time.time(),
        "attempt": attempt,
        "rankdeck": core.__version__,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "os": platform.platform(),
        "machine": platform.machine(),
        "cpu": platform.processor(),
        "cores": machine.physical_cores,
        "logical_cores": os.cpu_count(),
        "packages": recorded_versions(),
        "torch": machine.torch_version,
        "torch_cuda": machine.cuda_build,
        **({} if machine.rocm_build is None else {"torch_rocm": machine.rocm_build}),
        "driver": driver,
        "devices": [
            {"uuid": d.uuid, "kind": d.kind, "index": d.index, "name": d.name, "memory_bytes": d.memory_bytes}
            for d in run.devices
        ],
        "mode": run.mode,
        "backend": run.backend,
        "distributed": place.to_dict() if seats is None else seats.placed(place).to_dict(),
        "command": [sys.executable, *sys.argv],
        "ranks": [{"rank": c.rank, "argv": list(c.argv), "device": c.device.uuid} for c in commands],
    }
