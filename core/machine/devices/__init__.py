"""Devices to train on: NVIDIA GPUs through NVML, or slots of the processor; what they are and how they do.

`monitor` has what reads them, and loads NVML's bindings; the window opens without it.
"""

from core.machine.devices.device import POWER_CAP, Device, DeviceProcess, DeviceSample
from core.machine.devices.resolve import device_texts

__all__ = ["POWER_CAP", "Device", "DeviceProcess", "DeviceSample", "device_texts"]
