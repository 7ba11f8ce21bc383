"""`EnergyCounter`: the energy that the GPU of this process has used, as its driver counts it."""

from __future__ import annotations

from core.machine.devices.amd import AMD
from core.machine.devices.gpu_driver import GpuReader
from core.machine.devices.nvml import NVIDIA


class EnergyCounter:
    """Reads one GPU's energy counter: the first that the variables of this process leave visible.

    Args:
        is_amd: It is AMD's.
    """

    def __init__(self, *, is_amd: bool) -> None:
        driver = AMD if is_amd else NVIDIA
        self._reader: GpuReader | None = None
        try:
            devices = driver.find().devices
        except Exception:
            return
        first = next((device for device in devices if not device.hidden_by), None)
        if first is not None and first.counts_energy:
            self._reader = driver.reader(first, False)

    def read_j(self) -> float | None:
        """Joules since the driver was loaded; None where it does not count them."""
        return None if self._reader is None else self._reader.read().energy_j
