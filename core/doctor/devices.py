"""Checks of the GPUs: the driver's list, PyTorch's build against driver and card, and free memory on each card."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.doctor.finding import DEVICES, Finding, Topic
from core.errors import RankdeckError
from core.formatting import memory_size
from core.launch.mode import can_train_on, check_cuda
from core.machine.cuda_torch import cuda_tag
from core.machine.devices import Device, DeviceSample
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import device_label
from core.machine.platform import Platform

GPUS: Final = Topic("gpus", "GPUs", DEVICES, "A rank trains on one GPU. Without any, ranks train on the CPU.")
BUILD: Final = Topic(
    "cuda_build",
    "PyTorch's CUDA build",
    DEVICES,
    "A build of PyTorch runs on cards it was compiled for, with a driver that is new enough for its CUDA version.",
)
NO_CUDA: Final = "PyTorch cannot use your GPUs"
# Of a card's memory: with less free, other programs or the desktop leave little to train with.
BUSY_SHARE: Final = 0.5


def check_gpus(monitor: DeviceMonitor, platform: Platform) -> Finding:
    listed = [device for device in monitor.devices() if device.kind == "cuda"]
    found = [device for device in listed if not device.hidden_by]
    hidden = f"{listed[-1].hidden_by} hides {len(listed) - len(found)} of {len(listed)}." if found != listed else ""
    if not found:
        why = " ".join(part for part in ("none; training uses CPU devices.", hidden, monitor.problem) if part)
        return GPUS.ok(why)
    text = ", ".join(device.name for device in found) + (f"; driver {monitor.driver}" if monitor.driver else "")
    text = f"{text}. {hidden}" if hidden else text
    try:
        check_cuda(found, platform)
    except RankdeckError as error:
        return GPUS.warn(f"{text}. {error.cause}", error.next_step, "install_cuda", cause=NO_CUDA)
    if monitor.problem:
        return GPUS.warn(f"{text}. {monitor.problem}", "List the devices: rankdeck devices")
    return GPUS.ok(text)


def check_build(devices: Sequence[Device], driver: str | None, platform: Platform) -> Finding:
    """Compare PyTorch's CUDA version with driver and cards."""
    gpus = [device for device in devices if device.kind == "cuda" and can_train_on(device, platform)]
    if gpus and platform.rocm_build is not None:
        return BUILD.ok(f"{platform.build} with {', '.join(gpu.name for gpu in gpus)}")
    if not gpus or platform.cuda_build is None:
        why = (
            "this PyTorch is a CPU build" if platform.is_cpu_only else "there is no GPU that this PyTorch is built for"
        )
        return BUILD.not_tried(f"nothing to compare: {why}")
    cards = ", ".join(
        f"{device.name} {'.'.join(map(str, device.compute_capability))}" for device in gpus if device.compute_capability
    )
    text = f"CUDA {platform.cuda_build} with driver {driver or 'not known'}; compute capability {cards or 'not known'}"
    wanted, major = cuda_tag(driver, gpus), re.match(r"\d+", platform.cuda_build)
    if wanted == "cu126" and major is not None and int(major[0]) >= 13:
        why = "CUDA 13 needs driver 580 or newer and a card of compute capability 7.5 or higher"
        return BUILD.warn(f"{text}. {why}", "Install the build for CUDA 12.6, or a newer driver.", "install_cuda")
    return BUILD.ok(text)


def check_card(device: Device, sample: DeviceSample | None) -> Finding:
    topic = Topic(
        f"memory_{device.uuid}",
        f"Memory of {device_label(device)}",
        DEVICES,
        "Weights, gradients, optimizer state and activations of a rank must fit into what is free on its card.",
    )
    if sample is None or sample.is_unusable:
        why = "it gave no figures" if sample is None else sample.error
        tool = "amd-smi" if device.is_amd else "nvidia-smi"
        return topic.warn(f"{device.name}: {why}", f"Check the card with {tool}; a restart may bring it back.")
    total, used = sample.memory_total_bytes, sample.memory_used_bytes
    if total is None or used is None:
        return topic.not_tried(f"{device.name}: the driver does not say")
    text = f"{device.name}: {memory_size(total - used)} of {memory_size(total)} free"
    if total - used < BUSY_SHARE * total:
        names = ", ".join(dict.fromkeys(process.name for process in sample.processes if process.name))
        users = f" Used by {names}." if names else ""
        return topic.warn(f"{text}.{users}", "Close programs that use this card, or train on another one.")
    return topic.ok(text)


def check_cards(devices: Sequence[Device], samples: Sequence[DeviceSample]) -> list[Finding]:
    by_uuid = {sample.uuid: sample for sample in samples}
    cards = [device for device in devices if device.kind == "cuda" and not device.hidden_by]
    return [check_card(device, by_uuid.get(device.uuid)) for device in cards]
