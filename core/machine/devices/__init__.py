"""Devices to train on, and their figures: GPUs, or slots of the processor.

`monitor` reads them, and loads NVML's bindings; the window opens without it.
"""

from core.machine.devices.device import POWER_CAP, Device, DeviceProcess, DeviceSample
from core.machine.devices.resolve import device_texts

__all__ = ["POWER_CAP", "Device", "DeviceProcess", "DeviceSample", "device_texts"]
