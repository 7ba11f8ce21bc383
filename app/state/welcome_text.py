"""Texts of the welcome page: what was found on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.formatting import byte_size, listed, memory_size
from core.machine.devices.names import device_label

if TYPE_CHECKING:
    from core.machine.devices import Device, DeviceSample

NOTHING_DOWNLOADED = "Nothing is downloaded until you ask for it."


@dataclass(frozen=True, slots=True)
class Machine:
    """What is known of this machine without asking a device.

    Attributes:
        torch_version: Of the installed PyTorch; None: there is none.
        gpu_build: What GPUs it was built for, as `Platform.gpu_build` says.
        free_bytes: Room on the disk of the runs' folder; None: not known.
        place: What that disk is called: "D:", or the folder.
    """

    torch_version: str | None
    gpu_build: str | None
    free_bytes: int | None
    place: str


def found_text(devices: Sequence[Device], samples: Sequence[DeviceSample]) -> str:
    """What was found to train on: "Rankdeck found 2 GPUs and 31 GiB of free memory."."""
    gpus = [device for device in devices if device.kind != "cpu"]
    shown = gpus or [device for device in devices if device.kind == "cpu"]
    if not shown:
        return NOTHING_DOWNLOADED
    word = "GPU" if gpus else "CPU device"
    text = f"Rankdeck found {len(shown)} {word}{'' if len(shown) == 1 else 's'}"
    free = _free_bytes(shown, samples)
    memory = f" and {memory_size(free)} of free memory" if free else ""
    return f"{text}{memory}. {NOTHING_DOWNLOADED}"


def demo_text(devices: Sequence[Device]) -> str:
    """What the demo trains on: "Python's own source code, on CPU 0 and CPU 1, about two minutes."."""
    where = ""
    if devices:
        where = f"{len(devices)} devices, " if len(devices) > 2 else f"{listed([device_label(d) for d in devices])}, "
    return f"On Python's own library of source code, {where}about two minutes."


def machine_text(machine: Machine, devices: Sequence[Device]) -> str:
    """One line on this machine: "PyTorch 2.13.0 with CUDA 13.0 · 2 GPUs · 412 GB free on D:"."""
    torch = "PyTorch is not installed"
    if machine.torch_version is not None:
        version = machine.torch_version.partition("+")[0]
        build = f"CUDA {machine.gpu_build}".replace("CUDA rocm", "ROCm ")
        torch = f"PyTorch {version} {f'with {build}' if machine.gpu_build else 'for CPUs'}"
    gpus = sum(device.kind != "cpu" for device in devices)
    found = "no GPU" if not gpus else f"{gpus} GPU{'' if gpus == 1 else 's'}"
    free = f"{byte_size(machine.free_bytes)} free on {machine.place}" if machine.free_bytes is not None else ""
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
