"""The run that trials are made of, from flags; shared by `rankdeck tune` and `rankdeck bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.cli.device_request import with_devices
from core.errors import PreflightError
from core.launch.command_line import request_from_arguments
from core.launch.resolved import ResolvedRun, resolve
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.recipes.check import check_by_recipe
from core.run_folder.store import list_runs


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


def checked_run(arguments: argparse.Namespace, check: Callable[[ResolvedRun], object]) -> ResolvedRun:
    """What the flags describe, decided on this machine.

    Args:
        arguments: Those of `rankdeck train`.
        check: Refuses runs of which no trials can be made, before the recipe is asked.

    Raises:
        RankdeckError: What `check` raises, and what a start of this run would.
    """
    request, platform = request_from_arguments(arguments), this_platform()
    with DeviceMonitor() as monitor:
        available = monitor.devices()
        cpus = monitor.cpu_slots()
    config, _ = with_devices(request, available, cpus, platform)
    run = resolve(config, request.recipe, available, platform)
    check(run)
    checked, _ = check_by_recipe(run.config, run.recipe, global_batch=run.batch.global_)
    return replace(run, config=checked)
