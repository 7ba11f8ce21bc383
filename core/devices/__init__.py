"""Devices to train on: NVIDIA GPUs through NVML, or slots of the processor; what they are and how they do."""

from core.devices.model import Device, DeviceSample, HostSample
from core.devices.monitor import DeviceMonitor
from core.devices.resolve import device_texts, resolve_devices
from core.devices.words import POWER_CAP

__all__ = ["POWER_CAP", "Device", "DeviceMonitor", "DeviceSample", "HostSample", "device_texts", "resolve_devices"]
