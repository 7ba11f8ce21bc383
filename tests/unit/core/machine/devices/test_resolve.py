"""From what `--devices` took to devices."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.machine.devices import Device, device_texts
from core.machine.devices.resolve import resolve_devices

GPUS = [
    Device("GPU-6ada6000-1111", "cuda", 0, "RTX 6000 Ada", 48 << 30),
    Device("GPU-40904090-2222", "cuda", 1, "RTX 4090", 24 << 30),
    Device("GPU-40904090-3333", "cuda", 2, "RTX 4090", 24 << 30),
]


@pytest.mark.parametrize(
    ("texts", "available", "uuids"),
    [
        (["auto"], GPUS, [gpu.uuid for gpu in GPUS]),
        (["AUTO"], [], ["cpu:0"]),
        (["cpu"], GPUS, ["cpu:0"]),
        (["cpu:1"], [], ["cpu:0"]),
        (["cpu:3"], [], ["cpu:0", "cpu:1", "cpu:2"]),
        (["cpu:0"], [], ["cpu:0"]),
        (["cpux1"], [], ["cpu:0"]),
        (["cpux3"], [], ["cpu:0", "cpu:1", "cpu:2"]),
        (["CPUx2", "cuda:0"], GPUS, ["cpu:0", "cpu:1", "GPU-6ada6000-1111"]),
        (["cpu:0", "cpu:1"], [], ["cpu:0", "cpu:1"]),
        (["cpu:2,cpu:0"], [], ["cpu:2", "cpu:0"]),
        (["cuda:1", "cuda:0"], GPUS, ["GPU-40904090-2222", "GPU-6ada6000-1111"]),
        (["0,2"], GPUS, ["GPU-6ada6000-1111", "GPU-40904090-3333"]),
        ([" cuda:0 , cpu:2 "], GPUS, ["GPU-6ada6000-1111", "cpu:0", "cpu:1"]),
        (["GPU-40904090-3333"], GPUS, ["GPU-40904090-3333"]),
        (["gpu-6ADA"], GPUS, ["GPU-6ada6000-1111"]),
        (["6ada"], GPUS, ["GPU-6ada6000-1111"]),
    ],
)
def test_devices_are_found_by_any_of_their_names(texts: list[str], available: list[Device], uuids: list[str]) -> None:
    assert [device.uuid for device in resolve_devices(texts, available)] == uuids


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "is empty"),
        (["", " , "], "is empty"),
        (["cpux0"], "counts 0 CPU devices"),
        (["cpu:1025"], "cpux1025 counts 1025 CPU devices; 1 to 1024"),
        (["cpu:1", "cpu:9999"], "no CPU device cpu:9999"),
        (["cpux2", "cpu:1"], "named twice"),
        (["cuda:7"], "no device 'cuda:7'"),
        (["cuda"], "no device 'cuda'"),
        (["GPU-"], "no device 'GPU-'"),
        (["tpu:0"], "no device 'tpu:0'"),
        (["auto", "cuda:0"], "no device 'auto'"),
        (["GPU-4090"], "matches 2 UUIDs"),
        (["cuda:0", "GPU-6ada"], "named twice"),
        (["cpu:1", "cpu:1"], "named twice"),
    ],
)
def test_what_names_no_device_is_refused_and_says_what_there_is(texts: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        resolve_devices(texts, GPUS)
    assert caught.value.field == "devices"
    assert "cuda:1 (RTX 4090, GPU-40904090-2222)" in caught.value.next_step or "cpux2" in caught.value.next_step


def test_without_a_gpu_only_cpu_devices_are_offered() -> None:
    with pytest.raises(ConfigError, match="no device 'cuda:0'") as caught:
        resolve_devices(["cuda:0"], [])
    assert "cpux2" in caught.value.next_step


def test_chosen_devices_are_written_so_that_they_are_found_again() -> None:
    slots = resolve_devices(["cpu:2"], [])
    assert device_texts(slots) == ("cpux2",)
    assert device_texts(slots[1:]) == ("cpu:0",)
    assert device_texts(resolve_devices(["cpu:1,cpu:2"], [])) == ("cpu:1", "cpu:2")
    assert device_texts([GPUS[1], GPUS[0]]) == ("GPU-40904090-2222", "GPU-6ada6000-1111")
    assert device_texts([GPUS[1], *slots]) == ("GPU-40904090-2222", "cpux2")
