"""`rankdeck train --slurm`: submit a run."""

from __future__ import annotations

import argparse

from core.cli.terminal import Terminal
from core.errors import UsageError
from core.launch.command_line import request_from_arguments
from core.launch.slurm import SlurmRequest, job_state, submit_run
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import resolve_devices
from core.paths import default_runs_dir


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
    job = submit_run(request.config, request.recipe, request.runs_dir or default_runs_dir(), asked)
    if arguments.detach:
        terminal.data(job.run_dir.name)
        return 0
    state = job_state(job.number)
    terminal.say(f"Submitted as job {job.number}{f': {state}' if state else ''}. Its state: squeue --job={job.number}")
    terminal.say(f"Run: {job.run_dir}")
    terminal.say(f"Log: {job.log}")
    terminal.say(f"To resume it after its end: sbatch {job.file}")
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
