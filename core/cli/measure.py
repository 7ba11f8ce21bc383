"""`rankdeck measure`: how fast the devices exchange tensors, and what synchronising would cost at some intervals."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Final

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.errors import UsageError
from core.launch.mode import check_cuda, usable_devices
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import resolve_devices
from core.machine.platform import Platform, this_platform
from core.measure.link import BYTES_PER_PARAMETER, keep_link, measure_link, sync_cost

_INTERVALS: Final = (1, 10, 50, 500, None)


def measure(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measures the devices named, and keeps the result for the window."""
    parameters, step_time_s = arguments.parameters, arguments.step_time_s
    if (parameters is None) != (step_time_s is None):
        raise UsageError(
            "A prediction needs both the model's size and the step time.",
            "Give both --parameters and --step-time-s, or neither.",
        )
    if parameters is not None and not (parameters >= 1 and 0 < step_time_s < 1e6):
        raise UsageError("The model's size and the step time must be positive.", "Give numbers above 0.")
    platform = this_platform()
    with DeviceMonitor() as monitor:
        devices = _measured(arguments.devices, monitor, platform)
    check_cuda(devices, platform)
    link = measure_link(devices, platform)
    keep_link(link, devices, platform, chosen_runs_dir(arguments))
    prices = [] if parameters is None else [
        (every, sync_cost(parameters * BYTES_PER_PARAMETER, step_time_s, link, every)) for every in _INTERVALS
    ]  # fmt: skip
    if arguments.json:
        terminal.json(
            {
                **dataclasses.asdict(link),
                "devices": [device.uuid for device in devices],
                "prices": [{"sync_every": every, **dataclasses.asdict(cost)} for every, cost in prices],
            }
        )
        return 0
    names = ", ".join(device.uuid for device in devices)
    terminal.say(f"{link.mb_per_s:,.0f} MB/s over {names} ({link.backend}), {1e3 * link.latency_s:.2f} ms at least")
    rows = [("never" if every is None else f"{every}", cost.text) for every, cost in prices]
    if rows:
        terminal.table(("EVERY", "COSTS"), rows)
    return 0


def _measured(asked: str | None, monitor: DeviceMonitor, platform: Platform) -> list[Device]:
    """The devices named; none named: all GPUs where there are two or more, else the CPU devices."""
    if asked is not None:
        return resolve_devices(tuple(asked.split(",")), monitor.devices())
    usable, _ = usable_devices(monitor.devices(), platform)
    gpus = [device for device in usable if device.kind == "cuda"]
    return gpus if len(gpus) > 1 else monitor.cpu_slots()
