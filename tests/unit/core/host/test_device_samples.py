"""Device lines of a run: whose figures they hold."""

from __future__ import annotations

import threading
from typing import Any

from core.host.device_samples import DeviceSampler, sampled
from core.machine.devices import Device, DeviceProcess, DeviceSample
from core.machine.devices.device import HostSample

GPU = Device("GPU-1", "cuda", 0, "Card", 2**34)
SLOTS = [Device(f"cpu:{n}", "cpu", n, f"CPU {n}", 2**34) for n in range(2)]


class FakeMonitor:
    """One slot's process is known, the other's is not yet."""

    def sample(self) -> list[DeviceSample]:
        user = (DeviceProcess(7, "blender"),)
        return [
            DeviceSample("GPU-1", 1.0, 5.0, processes=user, drives_screen=True),
            DeviceSample("cpu:0", 1.0, 90.0, 2**28, 2**34),
            DeviceSample("cpu:1", 1.0, 40.0, 2**33, 2**34, is_whole_machine=True),
        ]

    def host(self) -> HostSample:
        return HostSample(1.0, 40.0)


def test_a_slot_has_no_line_until_its_process_is_known() -> None:
    """The machine's memory in its curve would be a peak that no rank ever used."""
    lines: list[dict[str, Any]] = []
    there = threading.Event()

    def take(found: list[dict[str, Any]]) -> None:
        lines.extend(found)
        there.set()

    sampler = DeviceSampler(FakeMonitor(), {"GPU-1", "cpu:0", "cpu:1"}, take)  # type: ignore[arg-type]
    assert there.wait(10)
    sampler.close()
    assert [line["uuid"] for line in lines[:3]] == ["GPU-1", "cpu:0", "host"]
    assert not {"processes", "drives_screen", "is_whole_machine"} & lines[0].keys(), (
        "others' programs are not the run's"
    )


def test_a_run_on_cpu_devices_samples_gpus_too() -> None:
    assert sampled([GPU], [GPU, *SLOTS]) == {"GPU-1"}
    assert sampled(SLOTS, [GPU, *SLOTS]) == {"GPU-1", "cpu:0", "cpu:1"}
