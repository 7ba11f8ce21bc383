"""GPUs that `CUDA_VISIBLE_DEVICES` and ROCm's variables leave visible, as programs number them. Pure.

The drivers' libraries ignore these variables.
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.machine.devices.device import Device

CUDA: Final = "CUDA_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
ORDER: Final = "CUDA_DEVICE_ORDER"
BY_BUS: Final = "PCI_BUS_ID"
_ORDINAL: Final = re.compile(r"[+-]?\d+")

UNCLEAR_STEP: Final = f"Set {ORDER}={BY_BUS} to count as nvidia-smi does, or name GPUs by UUID in {CUDA}."


def unclear_cause(setting: str) -> str:
    return (
        f"{setting} counts GPUs in CUDA's default order, the fastest first, and CUDA alone knows that order for the "
        "unlike GPUs of this machine."
    )


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """The GPUs of a machine as a program started here would see them.

    Attributes:
        devices: The visible ones in its order, `Device.index` counting them; then the hidden ones.
        problems: Faults of the variables, a sentence each.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...] = ()


def visible_gpus(
    gpus: Sequence[Device],
    environment: Mapping[str, str],
    find_mig: Callable[[str], Device | None],
) -> VisibleGpus:
    """Apply `CUDA_VISIBLE_DEVICES` as CUDA does: the first entry that names no GPU ends the list.

    Args:
        gpus: All GPUs, in the order of the PCI bus.
        find_mig: Looks up a MIG device by its UUID, which is in no list of GPUs.
    """
    value = environment.get(CUDA)
    if value is None:
        return VisibleGpus(tuple(gpus))
    setting, entries = _parsed(CUDA, value)
    by_bus = environment.get(ORDER, "").strip().upper() == BY_BUS
    is_one_kind = len({(gpu.name, gpu.memory_bytes) for gpu in gpus}) <= 1
    if _depends_on_order(entries, gpus) and not (by_bus or is_one_kind):
        problem = f"{unclear_cause(setting)} {UNCLEAR_STEP}"
        return VisibleGpus(tuple(replace(gpu, hidden_by=setting, is_unclear=True) for gpu in gpus), (problem,))
    chosen, problems = _chosen(entries, gpus, setting, find_mig)
    return VisibleGpus((*_counted(chosen), *_hidden(gpus, chosen, setting)), problems)


def visible_amd_gpus(gpus: Sequence[Device], environment: Mapping[str, str]) -> VisibleGpus:
    """Apply ROCm's variables, to all AMD GPUs in ROCm's order.

    Its runtime applies `ROCR`, and HIP, which torch is built on, its own to what is left; HIP reads CUDA's name where
    its own is not set.
    """
    left, hidden, problems = list(gpus), list[Device](), list[str]()
    for name in (ROCR, HIP if HIP in environment else CUDA):
        value = environment.get(name)
        if value is None:
            continue
        setting, entries = _parsed(name, value)
        chosen, faults = _chosen(entries, left, setting)
        problems += faults
        hidden += _hidden(left, chosen, setting)
        left = chosen
    return VisibleGpus((*_counted(left), *hidden), tuple(problems))


def _parsed(name: str, value: str) -> tuple[str, list[str]]:
    """A variable as text, and its entries."""
    if not value.strip():
        return f'{name}=""', []
    return f"{name}={value}", [entry.strip() for entry in value.split(",")]


def _counted(gpus: Sequence[Device]) -> list[Device]:
    return [replace(gpu, index=place) for place, gpu in enumerate(gpus)]


def _hidden(gpus: Sequence[Device], chosen: Sequence[Device], setting: str) -> list[Device]:
    return [replace(gpu, hidden_by=setting) for gpu in gpus if gpu not in chosen]


def _chosen(
    entries: Sequence[str], gpus: Sequence[Device], setting: str, find_mig: Callable[[str], Device | None] | None = None
) -> tuple[list[Device], tuple[str, ...]]:
    """The named GPUs, and the fault of an entry that ends the list early; only CUDA's has MIG devices."""
    chosen: list[Device] = []
    ignores = f"{'ROCm' if find_mig is None else 'CUDA'} ignores it and what follows it."
    for entry in entries:
        gpu = find_mig(entry) if find_mig is not None and entry.startswith("MIG-") else _named(entry, gpus)
        if gpu is None:
            # The usual way to say "none"; CUDA takes any negative number so.
            if entry == "-1":
                return chosen, ()
            return chosen, (f"{setting} names {entry or 'an empty place'}, and there is no such GPU here. {ignores}",)
        if gpu in chosen and find_mig is not None:
            return [], (f"{setting} names {gpu.name} twice, and CUDA then shows no GPU at all.",)
        if gpu in chosen:
            return chosen, (f"{setting} names {gpu.name} twice. {ignores}",)
        chosen.append(gpu)
    return chosen, ()


def _named(entry: str, ordered: Sequence[Device]) -> Device | None:
    number = _ORDINAL.match(entry)
    if number is not None:  # CUDA reads "1gpu" as 1
        place = int(number[0])
        return ordered[place] if 0 <= place < len(ordered) else None
    if not entry.lower().startswith("gpu-"):
        return None
    found = [gpu for gpu in ordered if gpu.uuid.lower().startswith(entry.lower())]
    return found[0] if len(found) == 1 else None


def _depends_on_order(entries: Sequence[str], gpus: Sequence[Device]) -> bool:
    """True where numbers leave out some of the GPUs: with all of them visible only their numbers would differ."""
    numbers = {int(found[0]) for entry in entries if (found := _ORDINAL.match(entry))}
    return any(0 <= number < len(gpus) for number in numbers) and not numbers >= set(range(len(gpus)))
