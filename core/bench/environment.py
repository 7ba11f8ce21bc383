"""`environment.json` of a benchmark: machine, versions, devices, load; no names of users or machines."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any, Final

import psutil

import core
from core.bench.contenders import threads_of_device
from core.bench.kinds import Kind
from core.host.environment import PACKAGES
from core.launch.resolved import ResolvedRun
from core.machine.devices.cpu import processor_name
from core.machine.packages import installed_version
from core.machine.platform import physical_cores

FORMAT: Final = "rankdeck-bench-environment"
_LOAD_S: Final = 1.0


def busy_share() -> float:
    """Share of the processor that programs keep busy, watched for a second."""
    return float(psutil.cpu_percent(interval=_LOAD_S)) / 100


def describe(kind: Kind, run: ResolvedRun, counts: list[int], busy_before: float) -> dict[str, Any]:
    """What was measured on what.

    Args:
        kind: The benchmark.
        run: On the most devices.
        counts: Numbers of devices.
        busy_before: `busy_share` before anything was started.
    """
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
        "devices": [{"kind": d.kind, "name": d.name, "memory_bytes": d.memory_bytes} for d in run.devices],
        "rankdeck": core.__version__,
        "python": platform.python_version(),
        "torch": machine.torch_version,
        "torch_cuda": machine.cuda_build,
        **({} if machine.rocm_build is None else {"torch_rocm": machine.rocm_build}),
        "packages": {name: version for name in PACKAGES if (version := installed_version(name)) is not None},
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": processor_name(),
        "cores": physical_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "busy_before": round(busy_before, 3),
        "platform": sys.platform,
    }
