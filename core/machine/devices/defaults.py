"""Default devices of a run, and the reasons against the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from core.formatting import memory_size
from core.machine.devices.device import Device, DeviceSample

# So that a first run on a machine without a GPU shows several ranks.
DEFAULT_CPU_DEVICES: Final = 2
# A process that holds more than this trains or serves a model; a desktop's programs hold less.
LARGE_PROCESS_BYTES: Final = 2**30
UNNAMED_USE_BYTES: Final = 2 * 2**30
# A card that is fuller than both is in use, also where no process can be seen: inside a container the driver lists
# none, and Windows' WDDM does not say what each holds. A desktop with a browser takes 1 to 2 GiB.
UNNAMED_USE_SHARE: Final = 1 / 8
BUSY_PERCENT: Final = 50.0
# Half, and a little: of a card of 48 GB the driver counts 49,140 MiB, of one of 24 GB 24,564. In DDP every rank waits
# for the slowest and holds the same model, so a much smaller card holds the others up.
LEAST_SHARE_OF_BEST: Final = 0.48

# torch's builds for CUDA 13 lack cards before Turing, those before CUDA 12.8 lack Blackwell:
# https://github.com/pytorch/pytorch/blob/main/RELEASE.md
_TURING: Final = (7, 5)
_BLACKWELL: Final = (10, 0)
_CUDA_WITH_BLACKWELL: Final = (12, 8)
_CUDA_FROM_TURING: Final = (13, 0)


def default_devices(
    devices: Sequence[Device],
    samples: Mapping[str, DeviceSample],
    *,
    cuda_build: str | None,
) -> tuple[str, ...]:
    """UUIDs to train on before a person chose: free GPUs of the better half, or CPU devices where no GPU can be used.

    Empty where there are GPUs that this PyTorch can use and none of them is free.

    Args:
        samples: Their newest readings by UUID; a device without one counts as free.
        cuda_build: The CUDA version of this PyTorch, or "rocm7.2" (`Platform.gpu_build`); None for a CPU build.
    """
    usable = usable_gpus(devices, samples, cuda_build)
    if not usable:
        slots = sorted((device for device in devices if device.kind == "cpu"), key=lambda slot: slot.index)
        return tuple(slot.uuid for slot in slots[:DEFAULT_CPU_DEVICES])
    reasons = reasons_against(devices, samples, cuda_build=cuda_build)
    return tuple(device.uuid for device in usable if device.uuid not in reasons)


def reasons_against(
    devices: Sequence[Device], samples: Mapping[str, DeviceSample], *, cuda_build: str | None
) -> dict[str, str]:
    """The reasons against GPUs as defaults, by UUID. Arguments as before."""
    best = max((gpu.memory_bytes or 0 for gpu in usable_gpus(devices, samples, cuda_build)), default=0)
    found: dict[str, str] = {}
    for device in devices:
        if device.kind != "cuda":
            continue
        sample = samples.get(device.uuid)
        size = device.memory_bytes
        if size is not None and sample is not None:
            size -= sample.screen_reserve_bytes
        reason = needed_build(device, cuda_build) or (in_use_by(sample) if sample is not None else "")
        if not reason and size is not None and size < LEAST_SHARE_OF_BEST * best:
            beside = ", beside the screen," if sample is not None and sample.drives_screen else ""
            reason = f"{memory_size(size)}{beside} is less than half of the best card"
        if reason:
            found[device.uuid] = reason
    return found


def usable_gpus(devices: Sequence[Device], samples: Mapping[str, DeviceSample], cuda_build: str | None) -> list[Device]:
    """GPUs that this PyTorch could train on now, in use or not."""
    return [
        device
        for device in devices
        if device.kind == "cuda"
        and not device.hidden_by
        and not needed_build(device, cuda_build)
        and not (device.uuid in samples and samples[device.uuid].is_unusable)
    ]


def needed_build(device: Device, cuda_build: str | None) -> str:
    """The build of PyTorch that a GPU needs, where this one cannot use it; else empty."""
    is_rocm = cuda_build is not None and cuda_build.startswith("rocm")
    if cuda_build is None or (cuda_build and device.is_amd is not is_rocm):
        return f"needs a {'ROCm' if device.is_amd else 'CUDA'} build of PyTorch"
    built_for = _version(cuda_build)
    if device.compute_capability is None or built_for is None:
        return ""
    if device.compute_capability < _TURING and built_for >= _CUDA_FROM_TURING:
        return "needs a build of PyTorch for CUDA 12.6"
    if device.compute_capability >= _BLACKWELL and built_for < _CUDA_WITH_BLACKWELL:
        return "needs a build of PyTorch for CUDA 12.8 or later"
    return ""


def in_use_by(sample: DeviceSample) -> str:
    """The users of a GPU, as a phrase ("in use by python (pid 123), 69 GiB"); empty while it is free.

    A run of ours is named, and its card is in use from its first process on, however little that holds.
    """
    if not _is_in_use(sample):
        return ""
    largest = next(iter(sample.processes), None)
    if largest is None:
        whose = "in use by a program that is not listed"
    else:
        own, name = largest.run, f"{largest.name} (pid {largest.pid})" if largest.name else f"pid {largest.pid}"
        name = f"the run {own}" if own else name
        others = sum(not own or process.run != own for process in sample.processes[1:])
        more = "" if not others else " and 1 other" if others == 1 else f" and {others} others"
        whose = f"in use by {name}{more}"
    held = sum(process.memory_bytes or 0 for process in sample.processes) or sample.memory_used_bytes
    if held is not None and held >= UNNAMED_USE_BYTES // 4:
        return f"{whose}, {memory_size(held)}"
    busy = sample.utilization_percent
    return whose if busy is None else f"{whose}, {busy:.0f} % busy"


def _is_in_use(sample: DeviceSample) -> bool:
    if sample.utilization_percent is not None and sample.utilization_percent >= BUSY_PERCENT:
        return True
    if any(process.run or (process.memory_bytes or 0) > LARGE_PROCESS_BYTES for process in sample.processes):
        return True
    used, total = sample.memory_used_bytes, sample.memory_total_bytes
    return used is not None and used > max(UNNAMED_USE_BYTES, UNNAMED_USE_SHARE * (total or 0))


def _version(text: str) -> tuple[int, int] | None:
    parts = text.split(".")
    try:
        return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    except ValueError:
        return None
