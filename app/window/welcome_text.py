"""Texts of the welcome page: facts about this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.formatting import byte_size, listed, memory_size
from core.machine.devices.defaults import in_use_by, needed_build, usable_gpus
from core.machine.devices.names import device_label
from core.machine.torch_builds import CUDA_13_DRIVER

if TYPE_CHECKING:
    from core.machine.devices import Device, DeviceSample
    from core.machine.platform import Platform

# Of the first CUDA 12, which each of PyTorch's CUDA 12 builds runs on.
OLDEST_DRIVER = 525
NOTHING_DOWNLOADED = "Nothing is downloaded until you ask for it."


def use_text(devices: Sequence[Device], samples: Sequence[DeviceSample]) -> str:
    """ "Runs use GPU 0 and GPU 1, with 31 GiB of free memory."."""
    if not devices:
        return NOTHING_DOWNLOADED
    names = listed([device_label(device) for device in devices])
    if len(devices) > 4:
        names = f"{len(devices)} {'GPUs' if devices[0].kind != 'cpu' else 'CPU devices'}"
    free = _free_bytes(devices, samples)
    memory = f", with {memory_size(free)} of free memory" if free else ""
    return f"Runs use {names}{memory}. {NOTHING_DOWNLOADED}"


@dataclass(frozen=True, slots=True)
class UnusedGpus:
    """Why GPUs of this machine are not used.

    Attributes:
        is_build: Another build of PyTorch mends it, which a button installs.
    """

    title: str
    text: str
    is_build: bool


def unused_gpus(
    devices: Sequence[Device],
    samples: Mapping[str, DeviceSample],
    chosen: Sequence[Device],
    *,
    build: str | None,
    driver: str | None,
) -> UnusedGpus | None:
    """Return why runs do not use this machine's GPUs; None where they do, or where a person chose so.

    `samples` are newest readings by UUID, `build` is `Platform.gpu_build`, `driver` the NVIDIA driver's version.
    """
    gpus = [device for device in devices if device.kind == "cuda"]
    if not gpus:
        return None
    count = "The GPU is" if len(gpus) == 1 else f"The {len(gpus)} GPUs are"
    uses_gpu = any(device.kind == "cuda" for device in chosen)
    cpus = [device_label(device) for device in chosen] or ["CPU devices"]
    instead = "" if uses_gpu else f"Until then, runs use {listed(cpus)}."
    number = re.match(r"\d+", driver or "")
    if number is not None and int(number[0]) < OLDEST_DRIVER and not all(gpu.is_amd for gpu in gpus):
        text = f"PyTorch needs driver {CUDA_13_DRIVER} or newer (for its CUDA 12.6 build {OLDEST_DRIVER})."
        return UnusedGpus(
            f"{count} not usable: the NVIDIA driver {driver} is too old", f"{text} {instead}".strip(), False
        )
    needs = next((need for gpu in gpus if (need := needed_build(gpu, build))), "")
    is_old = number is not None and int(number[0]) < CUDA_13_DRIVER and (build or "").startswith("13")
    if uses_gpu and not is_old:
        return None
    if build is None:
        why = "this PyTorch is built for the CPU only"
    elif is_old:
        why = f"this PyTorch needs driver {CUDA_13_DRIVER} or newer, and this is {driver}"
    elif needs and not any(not needed_build(gpu, build) for gpu in gpus):
        why = f"each {needs}" if len(gpus) > 1 else f"it {needs}"
    else:
        hidden = next((gpu.hidden_by for gpu in gpus if gpu.hidden_by), "")
        if hidden and all(gpu.hidden_by for gpu in gpus):
            return UnusedGpus(f"{count} not used: {hidden} hides {'it' if len(gpus) == 1 else 'them'}", instead, False)
        usable = usable_gpus(devices, samples, build)
        if usable and all(gpu.uuid in samples and in_use_by(samples[gpu.uuid]) for gpu in usable):
            return UnusedGpus(f"{count} in use by other programs", "Select one in New run all the same.", False)
        return None
    text = f"Install a build for GPUs (about 3 GB). {instead}".strip()
    return UnusedGpus(f"{count} not {'usable' if uses_gpu else 'used'}: {why}", text, True)


def machine_text(platform: Platform, free_bytes: int | None, place: str, devices: Sequence[Device]) -> str:
    """ "PyTorch 2.13.0 with CUDA 13.0 · 2 GPUs · 412 GB free on D:"; `place` is the disk of the runs' folder."""
    torch = "PyTorch is not installed"
    if platform.torch_version is not None:
        version = platform.torch_version.partition("+")[0]
        build = f"CUDA {platform.gpu_build}".replace("CUDA rocm", "ROCm ")
        torch = f"PyTorch {version} {f'with {build}' if platform.gpu_build else 'for CPUs'}"
    gpus = sum(device.kind != "cpu" for device in devices)
    found = "no GPU" if not gpus else f"{gpus} GPU{'' if gpus == 1 else 's'}"
    free = f"{byte_size(free_bytes)} free on {place}" if free_bytes is not None else ""
    return "This machine: " + " · ".join(part for part in (torch, found, free) if part)


def _free_bytes(devices: Sequence[Device], samples: Sequence[DeviceSample]) -> int:
    by_uuid = {sample.uuid: sample for sample in samples}
    free = 0
    for device in devices:
        sample = by_uuid.get(device.uuid)
        if sample is not None and sample.memory_used_bytes is not None and sample.memory_total_bytes is not None:
            free += max(0, sample.memory_total_bytes - sample.memory_used_bytes)
            if device.kind == "cpu":
                break  # they share the machine's
    return free
