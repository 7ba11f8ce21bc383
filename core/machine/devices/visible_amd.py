"""AMD GPUs visible to ROCm programs by `ROCR_VISIBLE_DEVICES`, `HIP_VISIBLE_DEVICES` and `CUDA_VISIBLE_DEVICES`. Pure.

ROCm's runtime applies the first, and HIP, which torch is built on, the second to what is left; HIP reads CUDA's name
where its own is not set. Each takes numbers and UUIDs, and the first entry that names no GPU, or one twice, ends the
list (https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html, and `RvdFilter` in ROCR-Runtime's
amd_filter_device.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from core.machine.devices.device import Device
from core.machine.devices.visible import VisibleGpus

ROCR: Final = "ROCR_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
CUDA: Final = "CUDA_VISIBLE_DEVICES"
_PREFIX: Final = "gpu-"


def visible_amd_gpus(gpus: Sequence[Device], environment: Mapping[str, str]) -> VisibleGpus:
    """Apply the variables as ROCm does, to all AMD GPUs in ROCm's order."""
    left, hidden, problems = list(gpus), [], []
    for name in (ROCR, HIP if HIP in environment else CUDA):
        value = environment.get(name)
        if value is None:
            continue
        setting = f"{name}={value}" if value.strip() else f'{name}=""'
        chosen, problem = _chosen(value, left)
        problems += [f"{setting} {problem}"] if problem else []
        hidden += [replace(gpu, hidden_by=setting) for gpu in left if gpu not in chosen]
        left = chosen
    visible = [replace(gpu, index=place) for place, gpu in enumerate(left)]
    return VisibleGpus((*visible, *hidden), tuple(problems))


def _chosen(value: str, gpus: Sequence[Device]) -> tuple[list[Device], str]:
    """The named GPUs, and the fault of an entry that ends the list early."""
    chosen: list[Device] = []
    for entry in value.split(",") if value.strip() else []:
        gpu = _named(entry.strip(), gpus)
        if gpu is not None and gpu not in chosen:
            chosen.append(gpu)
            continue
        if entry.strip() == "-1":  # the usual way to say "none"
            return chosen, ""
        why = f"names {entry.strip() or 'an empty place'}, and there is no such AMD GPU here"
        return chosen, f"{why if gpu is None else f'names {gpu.name} twice'}. ROCm ignores it and what follows it."
    return chosen, ""


def _named(entry: str, gpus: Sequence[Device]) -> Device | None:
    if entry.isdecimal():
        return gpus[int(entry)] if int(entry) < len(gpus) else None
    found = [gpu for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
    return found[0] if entry.lower().startswith(_PREFIX) and len(found) == 1 else None
