"""Quick checks: everything that takes a few seconds without importing torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from core.doctor import devices, machine, modes, software
from core.doctor.finding import Finding, Topic, answered
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import Platform


def examine(runs_dir: Path, platform: Platform) -> Iterator[Finding]:
    checks: list[tuple[Topic, Callable[[], Finding]]] = [
        (software.PYTHON, software.check_python),
        (software.TORCH, lambda: software.check_torch_build(platform)),
        (software.GLOO, lambda: software.check_connections(platform)),
        (software.TORCHVISION, lambda: software.check_torchvision(platform)),
        (software.RECIPES, software.check_recipes),
        (machine.MEMORY, machine.check_memory),
        (machine.LOOPBACK, machine.check_loopback),
        (machine.SLEEP, machine.check_sleep),
        (machine.RUNS, lambda: machine.check_disk(runs_dir)),
        (machine.WRITING, lambda: machine.check_writing(runs_dir)),
        (machine.LEFTOVERS, lambda: machine.check_leftovers(runs_dir)),
    ]
    if sys.platform == "win32":
        checks.append((machine.PAGE_FILE, machine.check_page_file))
    with DeviceMonitor(with_processes=True) as monitor:
        for topic, check in checks:
            yield answered(topic, check)
        yield answered(devices.GPUS, lambda: devices.check_gpus(monitor, platform))
        listed = monitor.devices()
        if any(device.kind == "cuda" for device in listed):
            yield answered(devices.BUILD, lambda: devices.check_build(listed, monitor.driver, platform))
        yield from devices.check_cards(listed, monitor.sample())
        yield from modes.check_modes(listed, monitor.cpu_slots(), platform, {})
