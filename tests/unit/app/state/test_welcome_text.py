"""What the welcome page says of this machine."""

from __future__ import annotations

import pytest

from app.state.welcome_text import NOTHING_DOWNLOADED, Machine, demo_text, found_text, machine_text
from core.machine.devices import Device, DeviceSample

GPUS = [Device(f"GPU-{n}", "cuda", n, "NVIDIA GeForce RTX 4090") for n in range(2)]
CPUS = [Device(f"cpu:{n}", "cpu", n, "CPU") for n in range(2)]
GIB = 2**30


def sample(uuid: str, used: int, total: int) -> DeviceSample:
    return DeviceSample(uuid, 0.0, memory_used_bytes=used, memory_total_bytes=total)


def test_gpus_are_counted_with_their_free_memory() -> None:
    samples = [sample("GPU-0", 0, 20 * GIB), sample("GPU-1", 9 * GIB, 20 * GIB)]
    said = "Rankdeck found 2 GPUs and 31 GiB of free memory. "
    assert found_text([*GPUS, *CPUS], samples) == said + NOTHING_DOWNLOADED


def test_cpu_devices_share_the_machines_memory() -> None:
    samples = [sample("cpu:0", 8 * GIB, 16 * GIB), sample("cpu:1", 8 * GIB, 16 * GIB)]
    assert found_text(CPUS, samples).startswith("Rankdeck found 2 CPU devices and 8.0 GiB of free memory.")
    assert found_text(CPUS[:1], []).startswith("Rankdeck found 1 CPU device. ")
    assert found_text([], []) == NOTHING_DOWNLOADED


def test_the_demo_says_where_it_trains() -> None:
    assert "CPU 0 and CPU 1, about two minutes" in demo_text(CPUS)
    assert "4 devices" in demo_text([*GPUS, *CPUS])
    assert demo_text([]).endswith("source code, about two minutes.")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (
            Machine("2.13.0+cu130", "13.0", 412_000_000_000, "D:"),
            "This machine: PyTorch 2.13.0 with CUDA 13.0 · 2 GPUs · 412 GB free on D:",
        ),
        (Machine("2.13.0+cpu", None, None, ""), "This machine: PyTorch 2.13.0 for CPUs · 2 GPUs"),
        (Machine(None, None, None, ""), "This machine: PyTorch is not installed · 2 GPUs"),
    ],
)
def test_one_line_on_the_machine(machine: Machine, said: str) -> None:
    assert machine_text(machine, GPUS) == said
