"""`environment.json`: what a run ran with, for the person who wonders later why it was different then."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from typing import Any

import core
from core.config.distributed import LaunchMethod
from core.launch.nodes.seats import NodeSeats
from core.launch.plan import RankCommand
from core.launch.resolved import ResolvedRun
from core.machine.packages import recorded_versions
from core.machine.platform import Platform


def describe_environment(
    machine: Platform,
    run: ResolvedRun,
    commands: Sequence[RankCommand],
    driver: str | None,
    attempt: int,
    method: LaunchMethod,
    seats: NodeSeats | None = None,
) -> dict[str, Any]:
    """Versions, machine, devices and commands. Reads package metadata only: torch is not imported."""
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
