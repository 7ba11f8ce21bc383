"""`GpuDriver`: the calls of a `DeviceMonitor` to a maker's driver. NVIDIA's is `nvml`, AMD's `amd`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.machine.devices.device import Device, DeviceSample


@dataclass(frozen=True, slots=True)
class Found:
    """The GPUs of one driver.

    Attributes:
        devices: In the driver's order, or as a variable that shows only some orders them, hidden ones last.
        problems: GPUs that are there and cannot be used, as text.
        driver: The driver's version; None when it does not say.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...]
    driver: str | None


class GpuReader(Protocol):
    """Reads one GPU. Used by one thread, which may hang in `read`.

    Attributes:
        asking: The driver's function that is being called now, to name what hangs.
    """

    asking: str

    def read(self) -> DeviceSample:
        """All figures now; None for those that the card does not support. A card that is gone has an error."""


@dataclass(frozen=True, slots=True)
class GpuDriver:
    """One maker's driver, called in threads of their own.

    Attributes:
        maker: "NVIDIA", "AMD".
        find: Starts the driver's library and lists its GPUs; raises where it cannot be used.
        reader: Makes the reader of one of them; `True`: also of the processes that compute on it.
        why_none: Explains an error of `find` in a sentence; empty where that needs no words.
        is_absent: True for an error of `find` that means that there is no such driver.
    """

    maker: str
    find: Callable[[], Found]
    reader: Callable[[Device, bool], GpuReader]
    why_none: Callable[[BaseException], str]
    is_absent: Callable[[BaseException], bool]
