"""Room: which contenders cannot fit into the memory that is free, by figures that an estimate has measured before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.bench.contenders import Contender
from core.estimate.estimate import estimate_run
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.free import Free, free_now
from core.estimate.probe import known_baselines, known_figures
from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import device_label


def find_shortages(run: ResolvedRun, contenders: Sequence[Contender]) -> dict[int, str]:
    """Why contenders cannot be measured, by their place; none where the model was never estimated.

    New run and `rankdeck estimate` measure the model; to do that here would take as long as a benchmark.
    """
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None:
        return {}
    with DeviceMonitor() as monitor:
        free = free_now(monitor.sample(), Path())
    found = {place: shortage(one.run, figures, baselines, free) for place, one in enumerate(contenders)}
    return {place: text for place, text in found.items() if text}


def shortage(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> str:
    """Why a run cannot be measured, as a sentence; empty where it may fit. Nothing is saved, so no copy is counted."""
    estimated = estimate_run(run, figures, baselines, free).devices
    needs = [(need.device, need.memory.total - need.memory.copy) for need in estimated]
    for device, need in needs:
        left = free.devices.get(device.uuid) if device.kind == "cuda" else None
        if left is not None and need > left:
            return _sentence(need, left, f"on {device_label(device)}")
    together = sum(need for device, need in needs if device.kind == "cpu")
    if free.ram is not None and together > free.ram:
        return _sentence(together, free.ram, "in this machine's memory")
    return ""


def _sentence(need: int, free: int, where: str) -> str:
    return f"It needs about {memory_size(need)}, and {memory_size(free)} are free {where}."
