"""`OwnGpu`: the memory in use of this process's GPU, by its driver."""

from __future__ import annotations

from core.machine.devices.amd import AMD
from core.machine.devices.gpu_driver import GpuReader
from core.machine.devices.nvml import NVIDIA


class OwnGpu:
    """Reads one GPU: the first that the variables of this process leave visible."""

    def __init__(self, *, is_amd: bool) -> None:
        driver = AMD if is_amd else NVIDIA
        self._reader: GpuReader | None = None
        try:
            devices = driver.find().devices
        except Exception:
            return
        first = next((device for device in devices if not device.hidden_by), None)
        if first is not None:
            self._reader = driver.reader(first, False)

    def used_bytes(self) -> int | None:
        """Its memory in use, by all processes; None where the driver does not say."""
        return None if self._reader is None else self._reader.read().memory_used_bytes
