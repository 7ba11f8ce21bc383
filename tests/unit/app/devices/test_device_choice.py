"""Choice of devices: what a person chose, else the defaults."""

from __future__ import annotations

from app.devices.device_choice import DeviceChoice
from core.machine.devices import Device, DeviceSample

A, B = (Device(f"GPU-{n}", "cuda", n, "RTX 4090", 24 * 2**30) for n in range(2))
CPU = Device("cpu:0", "cpu", 0, "CPU", 2**34)


def wished(choice: DeviceChoice) -> list[str]:
    return [device.uuid for device in choice.devices if choice.is_wished(device)]


def test_defaults_hold_until_a_person_chooses() -> None:
    choice = DeviceChoice()
    choice.set_devices([A, B, CPU], "")
    choice.take_samples(
        [DeviceSample(A.uuid, 1.0, utilization_percent=0.0), DeviceSample(B.uuid, 1.0, utilization_percent=90.0)]
    )
    assert wished(choice) == [A.uuid] and choice.is_by_default
    choice.choose([B.uuid, "GPU-elsewhere"])
    assert wished(choice) == [B.uuid] and choice.wished_beside([A.uuid, B.uuid]) == {"GPU-elsewhere"}


def test_a_gpu_that_comes_ends_a_choice_among_cpu_devices() -> None:
    choice = DeviceChoice()
    choice.set_devices([CPU], "")
    choice.choose([CPU.uuid], without_gpu=True)
    assert wished(choice) == [CPU.uuid]
    choice.set_devices([A, CPU], "")
    assert wished(choice) == [A.uuid] and choice.free == [A] and not choice.none_is_free
