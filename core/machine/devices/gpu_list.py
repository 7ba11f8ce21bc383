"""`GpuList`: the GPUs of all makers, each driver asked in a thread of its own; `OwnGpu`: the GPU of this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from core.machine.devices.amd import AMD, is_installed
from core.machine.devices.device import Device
from core.machine.devices.driver_thread import DriverThread, Found, GpuDriver, ReadGpu
from core.machine.devices.nvml import NVIDIA

_SLOW: Final = "The {maker} driver has not answered yet. Its GPUs appear when it does."


def drivers_here() -> tuple[GpuDriver, ...]:
    """NVIDIA's always, to explain missing GPUs; AMD's where `amdsmi` is installed."""
    return (NVIDIA, AMD) if is_installed() else (NVIDIA,)


class _Look:
    """One driver, and its answer."""

    def __init__(self, driver: GpuDriver) -> None:
        self.driver = driver
        self.thread: DriverThread[Found] = DriverThread(f"rankdeck-{driver.maker.lower()}-list", driver.find)
        self._ticket = self.thread.ask()

    def answered(self, deadline: float) -> bool:
        return self.thread.wait(self._ticket, deadline)

    @property
    def found(self) -> Found | None:
        return None if self.thread.failure is not None else self.thread.latest


class GpuList:
    """The drivers, and their GPUs.

    Args:
        limit_s: Longest wait for an answer.
    """

    def __init__(self, drivers: Sequence[GpuDriver], limit_s: float) -> None:
        self._looks = [_Look(driver) for driver in drivers]
        self._deadline = time.monotonic() + limit_s

    def answers(self) -> int:
        """Count the drivers that have answered; waits for the others until the time limit."""
        return sum(look.answered(self._deadline) for look in self._looks)

    def gpus(self, *, hidden: bool) -> list[tuple[Device, GpuDriver]]:
        """GPUs of the drivers that have answered. Torch counts each maker's from 0; here one number is one GPU."""
        listed: list[tuple[Device, GpuDriver]] = []
        for look in self._looks:
            found = look.found
            before = len(listed)
            for device in found.devices if found is not None else ():
                if bool(device.hidden_by) == hidden:
                    listed.append((replace(device, index=device.index + before), look.driver))
        return listed

    def driver(self, maker: str) -> str | None:
        found = next((look.thread.latest for look in self._looks if look.driver.maker == maker), None)
        return None if found is None else found.driver

    @property
    def problem(self) -> str | None:
        """The reason for missing GPUs, in sentences; None when all is well."""
        has_gpus = any(look.found is not None and look.found.devices for look in self._looks)
        return " ".join(filter(None, (self._problem_of(look, has_gpus) for look in self._looks))) or None

    def _problem_of(self, look: _Look, has_gpus: bool) -> str:
        maker, failure, found = look.driver.maker, look.thread.failure, look.thread.latest
        if not look.answered(self._deadline):
            return _SLOW.format(maker=maker)
        if failure is not None:
            is_other_maker = has_gpus and look.driver.is_absent(failure)
            return "" if is_other_maker else look.driver.why_none(failure)
        if found is None or found.problems or found.devices:
            return "" if found is None else " ".join(found.problems)
        return "" if has_gpus else f"The {maker} driver works and finds no GPU."

    @property
    def threads(self) -> list[DriverThread[Found]]:
        return [look.thread for look in self._looks]


class OwnGpu:
    """Reads one GPU: the first that the variables of this process leave visible."""

    def __init__(self, *, is_amd: bool) -> None:
        driver = AMD if is_amd else NVIDIA
        self._read: ReadGpu | None = None
        try:
            devices = driver.find().devices
        except Exception:
            return
        first = next((device for device in devices if not device.hidden_by), None)
        if first is not None:
            self._read = driver.reader(first, False)

    def used_bytes(self) -> int | None:
        """Its memory in use, by all processes; None where the driver does not say."""
        return None if self._read is None else self._read().memory_used_bytes
