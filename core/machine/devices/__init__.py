"""Devices to train on: NVIDIA GPUs through NVML, or slots of the processor; what they are and how they do."""

from core.machine.devices.device import Device, DeviceProcess, DeviceSample, HostSample
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.nvml import POWER_CAP
from core.machine.devices.resolve import device_texts, resolve_devices

__all__ = [
    "POWER_CAP",
    "Device",
    "DeviceMonitor",
    "DeviceProcess",
    "DeviceSample",
    "HostSample",
    "device_texts",
    "resolve_devices",
]
