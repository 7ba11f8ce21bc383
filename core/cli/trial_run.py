"""The run that trials are made of, from flags; shared by `rankdeck tune` and `rankdeck bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.cli.device_request import with_devices
from core.cli.launched import with_others
from core.errors import PreflightError
from core.launch.command_line import TrainRequest, request_from_arguments
from core.launch.mode import recipe_platform, usable_devices
from core.launch.resolved import ResolvedRun, resolve
from core.machine.devices.device import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import device_texts as texts_of
from core.machine.devices.resolve import resolve_devices
from core.machine.platform import this_platform
from core.recipes.check import check_by_recipe
from core.run_folder.store import list_runs
from core.trials.machines import Machines


def refuse_beside_a_run(runs_dir: Path, do: str) -> None:
    """Refuses trials while a run trains.

    Args:
        runs_dir: The folder of runs.
        do: What is refused, as the first word of the next step.

    Raises:
        PreflightError: One trains.
    """
    live = [entry for entry in list_runs(runs_dir) if entry.state is not None and entry.state.is_live]
    if live:
        raise PreflightError(
            f"{live[0].path.name} is training. Trials would slow it down, and it would slow them down.",
            f"{do} when it has ended.",
        )


def own_devices(request: TrainRequest) -> tuple[Device, ...]:
    """The devices of this machine that a command for several machines asks for; raises as `with_devices`."""
    platform = this_platform()
    with DeviceMonitor() as monitor:
        available = monitor.devices()
        config, _ = with_devices(request, available, monitor.cpu_slots(), platform)
    usable, _ = usable_devices(available, recipe_platform(request.recipe, platform))
    return tuple(resolve_devices(config.devices, usable))


def checked_run(
    arguments: argparse.Namespace,
    check: Callable[[ResolvedRun], object],
    machines: Machines | None = None,
    most: int = 0,
) -> ResolvedRun:
    """What the flags describe, decided on this machine.

    Args:
        arguments: Those of `rankdeck train`.
        check: Refuses runs of which no trials can be made, before the recipe is asked.
        machines: Several whose devices it has; None: flags name those of this one.
        most: Of several machines up to this number of devices is used; 0: all.

    Raises:
        RankdeckError: What `check` raises, and what a start of this run would.
    """
    request, platform = request_from_arguments(arguments), this_platform()
    with DeviceMonitor() as monitor:
        available = monitor.devices()
        cpus = monitor.cpu_slots()
    if machines is None:
        config, _ = with_devices(request, available, cpus, platform)
    else:
        devices = machines.devices[: most or None]
        config = request.config.replace(devices=texts_of(devices), nodes=None)
        available = with_others(devices)
        platform = replace(platform, physical_cores=machines.cores_for(len(devices)))
    run = resolve(config, request.recipe, available, platform)
    check(run)
    checked, _ = check_by_recipe(run.config, run.recipe, global_batch=run.batch.global_)
    return replace(run, config=checked)
