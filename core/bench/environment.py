"""`environment.json` of a benchmark: machine, versions, devices, load; no names of users or machines."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import psutil

import core
from core.bench.contenders import threads_of_device
from core.bench.kinds import Kind
from core.host.environment import PACKAGES
from core.launch.resolved import ResolvedRun
from core.machine.devices.cpu import processor_name
from core.machine.devices.device import Device
from core.machine.packages import installed_version
from core.machine.platform import physical_cores
from core.trials.machines import Machines, label

FORMAT: Final = "rankdeck-bench-environment"
_LOAD_S: Final = 1.0


def busy_share() -> float:
    """Share of the processor that programs keep busy, watched for a second."""
    return float(psutil.cpu_percent(interval=_LOAD_S)) / 100


def machine_facts(busy_before: float) -> dict[str, Any]:
    """This machine; `busy_before`: as `busy_share` said before anything was started."""
    return {
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": processor_name(),
        "cores": physical_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "busy_before": round(busy_before, 3),
    }


def describe(
    kind: Kind, run: ResolvedRun, counts: list[int], facts: dict[str, Any], machines: Machines | None = None
) -> dict[str, Any]:
    """What was measured on what.

    Args:
        kind: The benchmark.
        run: On the most devices.
        counts: Numbers of devices.
        facts: `machine_facts` of this machine.
        machines: Where there are several: all of them.
    """
    several = [] if machines is None else machines.all
    described = [
        {"name": label(number), "devices": _devices(one.devices), **one.facts} for number, one in enumerate(several, 1)
    ]
    machine = run.platform
    config = run.config
    return {
        "format": FORMAT,
        "version": 1,
        "written": time.strftime("%Y-%m-%d"),
        "kind": kind.value,
        "recipe": run.recipe.name,
        "mode": run.mode.value,
        "engine": run.choice.engine or None,
        "backend": run.backend or None,
        "precision": config.precision,
        "seq_len": config.seq_len,
        "options": {name: value for name, value in sorted(config.options.items()) if not isinstance(value, str)},
        "counts": counts,
        "threads_per_device": threads_of_device(run, counts),
        "devices": _devices(run.devices),
        "rankdeck": core.__version__,
        "python": platform.python_version(),
        "torch": machine.torch_version,
        "torch_cuda": machine.cuda_build,
        **({} if machine.rocm_build is None else {"torch_rocm": machine.rocm_build}),
        "packages": {name: version for name in PACKAGES if (version := installed_version(name)) is not None},
        **facts,
        "platform": sys.platform,
        **({"machines": described} if described else {}),
    }


def _devices(devices: Sequence[Device]) -> list[dict[str, Any]]:
    return [{"kind": d.kind, "name": d.name, "memory_bytes": d.memory_bytes} for d in devices]
