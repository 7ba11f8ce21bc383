"""GPUs visible to CUDA by `CUDA_VISIBLE_DEVICES`, as CUDA numbers them. Pure: NVML ignores that variable.

https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.machine.devices.device import Device

VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
ORDER: Final = "CUDA_DEVICE_ORDER"
BY_BUS: Final = "PCI_BUS_ID"
_ORDINAL: Final = re.compile(r"[+-]?\d+")

UNCLEAR_STEP: Final = f"Set {ORDER}={BY_BUS} to count as nvidia-smi does, or name GPUs by UUID in {VARIABLE}."


def unclear_cause(setting: str) -> str:
    return (
        f"{setting} counts GPUs in CUDA's default order, the fastest first, and CUDA alone knows that order for the "
        "unlike GPUs of this machine."
    )


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """The GPUs of a machine as a CUDA program started here would see them.

    Attributes:
        devices: The visible ones in CUDA's order, `Device.index` counting them; then the hidden ones.
        problems: Faults of the variable, a sentence each.
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
    value = environment.get(VARIABLE)
    if value is None:
        return VisibleGpus(tuple(gpus))
    setting = f"{VARIABLE}={value}" if value.strip() else f'{VARIABLE}=""'
    by_bus = environment.get(ORDER, "").strip().upper() == BY_BUS
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    is_one_kind = len({(gpu.name, gpu.memory_bytes) for gpu in gpus}) <= 1
    if _depends_on_order(entries, gpus) and not (by_bus or is_one_kind):
        problem = f"{unclear_cause(setting)} {UNCLEAR_STEP}"
        return VisibleGpus(tuple(replace(gpu, hidden_by=setting, is_unclear=True) for gpu in gpus), (problem,))
    chosen, problems = _chosen(entries, gpus, find_mig, setting)
    visible = tuple(replace(gpu, index=place) for place, gpu in enumerate(chosen))
    uuids = {gpu.uuid for gpu in visible}
    hidden = tuple(replace(gpu, hidden_by=setting) for gpu in gpus if gpu.uuid not in uuids)
    return VisibleGpus((*visible, *hidden), problems)


def _chosen(
    entries: Sequence[str], ordered: Sequence[Device], find_mig: Callable[[str], Device | None], setting: str
) -> tuple[list[Device], tuple[str, ...]]:
    chosen: list[Device] = []
    for entry in entries:
        gpu = find_mig(entry) if entry.startswith("MIG-") else _named(entry, ordered)
        if gpu is None:
            if entry == "-1":  # the usual way to say "none"; CUDA takes any negative number so
                return chosen, ()
            what = f"{setting} names {entry or 'an empty place'}, and there is no such GPU here."
            return chosen, (f"{what} CUDA ignores it and what follows it.",)
        if gpu in chosen:
            return [], (f"{setting} names {gpu.name} twice, and CUDA then shows no GPU at all.",)
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
