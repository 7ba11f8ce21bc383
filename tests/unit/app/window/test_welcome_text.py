"""What the welcome page says of this machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.window.welcome_text import NOTHING_DOWNLOADED, machine_text, unused_gpus, use_text
from core.machine.devices import Device, DeviceSample
from core.machine.platform import Platform

GPUS = [Device(f"GPU-{n}", "cuda", n, "NVIDIA GeForce RTX 4090") for n in range(2)]
CPUS = [Device(f"cpu:{n}", "cpu", n, "CPU") for n in range(2)]
GIB = 2**30


def sample(uuid: str, used: int, total: int) -> DeviceSample:
    return DeviceSample(uuid, 0.0, memory_used_bytes=used, memory_total_bytes=total)


def test_it_says_what_runs_will_use() -> None:
    samples = [sample("GPU-0", 0, 20 * GIB), sample("GPU-1", 9 * GIB, 20 * GIB)]
    names = "GPU 0 · RTX 4090 and GPU 1 · RTX 4090"
    assert use_text(GPUS, samples) == f"Runs use {names}, with 31 GiB of free memory. {NOTHING_DOWNLOADED}"
    both = [sample("cpu:0", 8 * GIB, 16 * GIB), sample("cpu:1", 8 * GIB, 16 * GIB)]
    assert use_text(CPUS, both).startswith("Runs use CPU 0 and CPU 1, with 8.0 GiB of free memory.")
    assert use_text([*GPUS] * 4, []).startswith("Runs use 8 GPUs. ") and use_text([], []) == NOTHING_DOWNLOADED


def test_gpus_that_are_not_used_have_their_reason() -> None:
    def unused(build: str | None, driver: str = "581.57", chosen: list[Device] = CPUS) -> tuple[str, str, bool] | None:
        found = unused_gpus([*GPUS, *CPUS], {}, chosen, build=build, driver=driver)
        return None if found is None else (found.title, found.text, found.is_build)

    until = "Until then, runs use CPU 0 and CPU 1."
    title = "The 2 GPUs are not used: this PyTorch is built for the CPU only"
    assert unused(None) == (title, f"Install a build for GPUs (about 3 GB). {until}", True)
    assert unused("13.0", chosen=GPUS) is None and unused("13.0") is None, "the CPU was chosen by a person"
    old = unused("13.0", "552.1", GPUS)
    assert old is not None and "needs driver 580 or newer, and this is 552.1" in old[0] and old[2]
    ancient = unused(None, "470.57")
    assert ancient is not None and "driver 470.57 is too old" in ancient[0] and until in ancient[1] and not ancient[2]
    assert unused_gpus(CPUS, {}, CPUS, build=None, driver=None) is None


def test_gpus_that_are_busy_or_hidden_are_told_apart() -> None:
    busy = {gpu.uuid: DeviceSample(gpu.uuid, 1.0, utilization_percent=99.0) for gpu in GPUS}
    found = unused_gpus([*GPUS, *CPUS], busy, CPUS, build="13.0", driver="581")
    assert found is not None and found.title == "The 2 GPUs are in use by other programs" and not found.is_build
    hidden = [replace(gpu, hidden_by="CUDA_VISIBLE_DEVICES") for gpu in GPUS]
    found = unused_gpus([*hidden, *CPUS], {}, CPUS, build="13.0", driver="581")
    assert found is not None and found.title.endswith("CUDA_VISIBLE_DEVICES hides them")


@pytest.mark.parametrize(
    ("torch", "build", "free", "said"),
    [
        ("2.13.0+cu130", "13.0", 412_000_000_000, "PyTorch 2.13.0 with CUDA 13.0 · 2 GPUs · 412 GB free on D:"),
        ("2.13.0+cpu", None, None, "PyTorch 2.13.0 for CPUs · 2 GPUs"),
        (None, None, None, "PyTorch is not installed · 2 GPUs"),
    ],
)
def test_one_line_on_the_machine(torch: str | None, build: str | None, free: int | None, said: str) -> None:
    assert machine_text(Platform("linux", torch, build, 8), free, "D:", GPUS) == f"This machine: {said}"
