"""`rankdeck train --slurm`: submit a run."""

from __future__ import annotations

import argparse
from typing import Final

from core.cli.terminal import Terminal
from core.errors import UsageError
from core.launch.command_line import request_from_arguments
from core.launch.slurm import BATCH_FILE, LOG, SlurmRequest, submit_run
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import resolve_devices
from core.paths import default_runs_dir

_NEED_SLURM: Final = ("nodes", "gpus_per_node", "sbatch")
_FORBIDDEN: Final = ("machine", "run_dir")


def is_submitted(arguments: argparse.Namespace) -> bool:
    """Return whether the run goes to Slurm; raises `UsageError` for flags that contradict it."""
    submits = arguments.slurm is not None
    for name in _FORBIDDEN if submits else _NEED_SLURM:
        flag = f"--{name.replace('_', '-')}"
        if getattr(arguments, name) is None:
            continue
        if submits:
            raise UsageError(f"--slurm and {flag} are both given.", f"Leave out {flag}.")
        raise UsageError(f"{flag} is given without --slurm.", "Add --slurm, or leave it out.")
    return submits


def submit_train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Submit a new run and say where its job and its log are.

    Raises:
        RankdeckError: The run cannot be submitted; nothing is left of it.
    """
    request = request_from_arguments(arguments)
    asked = SlurmRequest(
        1 if arguments.nodes is None else arguments.nodes,
        arguments.gpus_per_node or 0,
        _cpu_devices(request.config.devices),
        arguments.slurm,
        tuple(arguments.sbatch or ()),
    )
    number, run_dir = submit_run(request.config, request.recipe, request.runs_dir or default_runs_dir(), asked)
    if arguments.detach:
        terminal.data(run_dir.name)
        return 0
    terminal.say(f"Submitted as job {number}. Its state: squeue --job={number}")
    terminal.say(f"Run: {run_dir}")
    terminal.say(f"Log: {run_dir / LOG}")
    terminal.say(f"To resume it after its end: sbatch {run_dir / BATCH_FILE}")
    return 0


def _cpu_devices(asked: tuple[str, ...]) -> int:
    if asked == ("auto",):
        return 0
    with DeviceMonitor() as monitor:
        devices = resolve_devices(asked, monitor.devices())
    if any(device.kind == "cuda" for device in devices):
        raise UsageError(
            f"--slurm and --devices {','.join(asked)} are both given, but Slurm chooses the GPUs.",
            "Say how many it is to give: --gpus-per-node N",
        )
    return len(devices)
