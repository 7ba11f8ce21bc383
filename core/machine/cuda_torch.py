"""CUDA or ROCm build of PyTorch for this machine's GPUs, as a command for pip. Nothing is installed here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from core.machine import torch_builds
from core.machine.devices.device import Device
from core.machine.packages import Offer
from core.machine.torch_builds import PYTORCH_INDEX, Card, NvidiaDriver
from core.training_python import training_python

GOOD_TORCH: Final = "2.13.0"


def cuda_tag(driver: str | None, devices: Iterable[Device]) -> str:
    """The build for these GPUs by `torch_builds.choose_build`; ``rocm7.2`` for AMD's GPUs alone."""
    devices = list(devices)
    if devices and all(device.is_amd for device in devices):
        return torch_builds.ROCM_TAG
    return torch_builds.cuda_tag(driver_of(driver, devices))


def driver_of(driver: str | None, devices: Iterable[Device]) -> NvidiaDriver:
    """NVML's answers as `choose_build` takes them."""
    major = re.match(r"\d+", driver or "")
    cards = [Card(device.name, device.compute_capability) for device in devices if device.compute_capability]
    return NvidiaDriver(None if major is None else int(major[0]), tuple(cards))


def cuda_torch_offer(driver: str | None, devices: Iterable[Device]) -> Offer:
    """The command that replaces this interpreter's torch by a build for these GPUs.

    The build's local version (``2.13.0+cu130``) is named, so that pip replaces a CPU build of the same number and
    leaves everything else as it is. pip unpacks the new build before it removes the old one.
    """
    tag = cuda_tag(driver, devices)
    pip = (str(training_python().executable), "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
    return Offer(("torch",), (), (*pip, f"torch=={GOOD_TORCH}+{tag}", "--index-url", f"{PYTORCH_INDEX}/{tag}"))
