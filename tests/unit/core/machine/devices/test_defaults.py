"""Default devices: what is ticked before a person chose, and why the rest is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.machine.devices import Device, DeviceProcess, DeviceSample
from core.machine.devices.defaults import default_devices, in_use_by, needed_build, reasons_against

GIB = 2**30
CUDA = "13.0"
RADEON = Device("GPU-r", "cuda", 0, "Card", 8 * GIB, is_amd=True)
SLOTS = [Device(f"cpu:{n}", "cpu", n, f"CPU {n}", 32 * GIB) for n in range(4)]


def card(
    number: int, gib: int, *, capability: tuple[int, int] | None = (8, 9), hidden_by: str = "", name: str = "Card"
) -> Device:
    return Device(f"GPU-{number}", "cuda", number, name, gib * GIB, capability, hidden_by)


def sample(
    device: Device, *, busy: float | None = 0.0, used_gib: float | None = 0.4, processes: tuple[DeviceProcess, ...] = ()
) -> DeviceSample:
    used = None if used_gib is None else int(used_gib * GIB)
    total = device.memory_bytes
    return DeviceSample(device.uuid, 1.0, busy, used, total, processes=processes)


def by_uuid(*samples: DeviceSample) -> dict[str, DeviceSample]:
    return {one.uuid: one for one in samples}


def python(gib: float | None, pid: int = 123) -> DeviceProcess:
    return DeviceProcess(pid, "python", None if gib is None else int(gib * GIB))


def test_eight_busy_cards_and_a_small_one_leave_nothing_ticked() -> None:
    best = [card(n, 80, capability=(9, 0)) for n in range(8)]
    small = card(8, 2)
    busy = [sample(one, busy=97.0, used_gib=69.0, processes=(python(69.0),)) for one in best]
    samples = by_uuid(*busy, sample(small))
    assert default_devices([*best, small, *SLOTS], samples, cuda_build=CUDA) == ()
    reasons = reasons_against([*best, small, *SLOTS], samples, cuda_build=CUDA)
    assert reasons["GPU-0"] == "in use by python (pid 123), 69 GiB"
    assert reasons["GPU-8"] == "2.0 GiB is less than half of the best card"
    assert "cpu:0" not in reasons


def test_free_cards_of_the_better_half_are_ticked() -> None:
    ada, rtx, small, taken = card(0, 48), card(1, 24), card(2, 16), card(3, 48)
    samples = by_uuid(*(sample(one) for one in (ada, rtx, small)), sample(taken, busy=99.0))
    assert default_devices([ada, rtx, small, taken, *SLOTS], samples, cuda_build=CUDA) == ("GPU-0", "GPU-1")


@pytest.mark.parametrize(
    "mib",
    [
        [24_564],  # one that is not sampled yet counts as free
        [49_140, 24_564],  # a card of 24 GB is half of one of 48 GB
        [24_564, None],  # one of unknown size is no smaller than others
    ],
)
def test_cards_that_nothing_speaks_against_are_ticked(mib: list[int | None]) -> None:
    cards = [Device(f"GPU-{n}", "cuda", n, "Card", size and size << 20, (8, 9)) for n, size in enumerate(mib)]
    assert default_devices(cards, {}, cuda_build=CUDA) == tuple(one.uuid for one in cards)


@pytest.mark.parametrize(
    ("gpus", "cuda_build"),
    [
        ([], CUDA),
        ([card(0, 48)], None),
        ([card(0, 48, hidden_by="CUDA_VISIBLE_DEVICES=-1")], CUDA),
        ([card(0, 2, capability=(5, 0))], CUDA),
        ([card(0, 96, capability=(12, 0))], "12.6"),
    ],
    ids=["none", "cpu-build", "hidden", "too-old", "too-new"],
)
def test_without_a_usable_gpu_two_cpu_devices_are_ticked(gpus: list[Device], cuda_build: str | None) -> None:
    assert default_devices([*gpus, *SLOTS], {}, cuda_build=cuda_build) == ("cpu:0", "cpu:1")


def test_a_lost_card_is_neither_a_default_nor_the_best() -> None:
    lost, left = card(0, 80), card(1, 24)
    samples = by_uuid(DeviceSample("GPU-0", 1.0, error="GPU is lost", is_unusable=True), sample(left))
    assert default_devices([lost, left, *SLOTS], samples, cuda_build=CUDA) == ("GPU-1",)
    assert default_devices([lost, *SLOTS], samples, cuda_build=CUDA) == ("cpu:0", "cpu:1")


@pytest.mark.parametrize(
    ("made", "build", "needed"),
    [
        (card(0, 8), "13.0", ""),
        (card(0, 8, capability=(7, 5)), "13.0", ""),
        (card(0, 8, capability=(7, 0)), "13.0", "needs a build of PyTorch for CUDA 12.6"),
        (card(0, 8, capability=(7, 0)), "12.6", ""),
        (card(0, 8, capability=(12, 0)), "12.6", "needs a build of PyTorch for CUDA 12.8 or later"),
        (card(0, 8, capability=(12, 0)), "12.8", ""),
        (card(0, 8), None, "needs a CUDA build of PyTorch"),
        (card(0, 8, capability=None), "13.0", ""),
        (card(0, 8, capability=(5, 0)), "", ""),
        (card(0, 8), "rocm7.2", "needs a CUDA build of PyTorch"),
        (RADEON, "rocm7.2", ""),
        (RADEON, "13.0", "needs a ROCm build of PyTorch"),
        (RADEON, None, "needs a ROCm build of PyTorch"),
        (RADEON, "", ""),
    ],
)
def test_a_card_needs_a_build_that_knows_it(made: Device, build: str | None, needed: str) -> None:
    assert needed_build(made, build) == needed


def test_a_desktop_does_not_make_a_card_busy() -> None:
    """Windows lists a desktop's programs as computing, and says of none what it holds."""
    desktop = tuple(DeviceProcess(pid, "explorer") for pid in (7, 8, 9))
    assert in_use_by(sample(card(0, 24), busy=12.0, used_gib=1.5, processes=desktop)) == ""


@pytest.mark.parametrize(
    ("busy", "used_gib", "processes", "said"),
    [
        (97.0, 69.0, (python(69.0),), "in use by python (pid 123), 69 GiB"),
        (0.0, 3.0, (python(2.5), python(0.2, 5)), "in use by python (pid 123) and 1 other, 2.7 GiB"),
        (
            0.0,
            20.0,
            (python(None), python(None, 5), python(None, 6)),
            "in use by python (pid 123) and 2 others, 20 GiB",
        ),
        (0.0, 69.0, (), "in use by a program that is not listed, 69 GiB"),
        (91.0, 0.1, (DeviceProcess(44),), "in use by pid 44, 91 % busy"),
        (None, None, (), ""),
        (49.0, 0.4, (python(0.9),), ""),
    ],
)
def test_who_uses_a_card(
    busy: float | None, used_gib: float | None, processes: tuple[DeviceProcess, ...], said: str
) -> None:
    assert in_use_by(sample(card(0, 80), busy=busy, used_gib=used_gib, processes=processes)) == said


def test_what_the_screen_keeps_does_not_count_as_a_cards_memory() -> None:
    best, small = card(0, 8), card(1, 4)
    samples = {one.uuid: sample(one) for one in (best, small)}
    assert default_devices([best, small], samples, cuda_build=CUDA) == ("GPU-0", "GPU-1")
    samples["GPU-1"] = replace(samples["GPU-1"], drives_screen=True)
    assert default_devices([best, small], samples, cuda_build=CUDA) == ("GPU-0",)
    reason = reasons_against([best, small], samples, cuda_build=CUDA)["GPU-1"]
    assert reason == "3.5 GiB, beside the screen, is less than half of the best card"
