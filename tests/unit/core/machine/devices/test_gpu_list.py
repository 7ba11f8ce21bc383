"""The GPUs of several drivers as one list: how they are counted, and what is said of a driver that has none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from core.machine.devices.device import Device
from core.machine.devices.driver_thread import Found, GpuDriver, ReadGpu
from core.machine.devices.gpu_list import GpuList

CARDS = tuple(Device(f"GPU-{place}", "cuda", place, f"Card {place}") for place in range(2))
RADEON = Device("GPU-aaaa", "cuda", 0, "Radeon", is_amd=True)
HIDDEN = replace(CARDS[1], hidden_by="CUDA_VISIBLE_DEVICES=0")


class NoDriverError(Exception):
    pass


def no_reader(_device: Device, _with_processes: bool) -> ReadGpu:
    raise AssertionError("nothing is read here")


def driver(maker: str, answer: Found | Exception, gate: threading.Event | None = None) -> GpuDriver:
    def find() -> Found:
        if gate is not None:
            gate.wait(20)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def is_absent(error: BaseException) -> bool:
        return isinstance(error, NoDriverError)

    return GpuDriver(maker, find, no_reader, lambda error: f"No {maker}: {error}.", is_absent)


@contextmanager
def listing(*drivers: GpuDriver, limit_s: float = 20.0) -> Iterator[GpuList]:
    gpus = GpuList(drivers, limit_s)
    try:
        yield gpus
    finally:
        for thread in gpus.threads:
            thread.close(time.monotonic() + 20)


def test_the_second_makers_are_counted_after_the_firsts() -> None:
    with listing(driver("NVIDIA", Found(CARDS, (), "581")), driver("AMD", Found((RADEON,), (), "6.14"))) as gpus:
        assert gpus.answers() == 2
        assert [(device.uuid, device.index) for device, _ in gpus.gpus(hidden=False)] == [
            ("GPU-0", 0), ("GPU-1", 1), ("GPU-aaaa", 2),
        ]  # fmt: skip
        assert (gpus.driver("NVIDIA"), gpus.driver("AMD"), gpus.driver("Other")) == ("581", "6.14", None)
        assert gpus.problem is None


def test_hidden_ones_are_listed_apart() -> None:
    with listing(driver("NVIDIA", Found((CARDS[0], HIDDEN), (), None))) as gpus:
        gpus.answers()
        assert [device.uuid for device, _ in gpus.gpus(hidden=True)] == ["GPU-1"]


@pytest.mark.parametrize(
    ("nvidia", "amd", "problem"),
    [
        (NoDriverError("no library"), Found((RADEON,), (), None), None),  # an AMD machine needs no NVIDIA driver
        (NoDriverError("no library"), NoDriverError("no library"), "No NVIDIA: no library. No AMD: no library."),
        (OSError("broken"), Found((RADEON,), (), None), "No NVIDIA: broken."),
        (Found((), (), "581"), Found((RADEON,), (), None), None),
        (Found((), (), "581"), NoDriverError("x"), "The NVIDIA driver works and finds no GPU. No AMD: x."),
        (Found(CARDS, ("GPU 2 is lost.",), None), Found((), (), None), "GPU 2 is lost."),
    ],
)
def test_what_is_said_of_drivers_without_gpus(
    nvidia: Found | Exception, amd: Found | Exception, problem: str | None
) -> None:
    with listing(driver("NVIDIA", nvidia), driver("AMD", amd)) as gpus:
        assert gpus.answers() == 2
        assert gpus.problem == problem


def test_a_driver_that_hangs_holds_up_no_other() -> None:
    gate = threading.Event()
    with listing(
        driver("NVIDIA", Found(CARDS, (), None)), driver("AMD", Found((RADEON,), (), None), gate), limit_s=0.2
    ) as gpus:
        assert gpus.answers() == 1
        assert [device.uuid for device, _ in gpus.gpus(hidden=False)] == ["GPU-0", "GPU-1"]
        assert gpus.problem == "The AMD driver has not answered yet. Its GPUs appear when it does."
        gate.set()
