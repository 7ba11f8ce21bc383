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
# A GPU counts as faster if its cores × clock are this multiple of another's: CUDA's own measure is not published.
_CLEARLY: Final = 1.5
_ORDINAL: Final = re.compile(r"[+-]?\d+")

UNCLEAR_STEP: Final = f"Set {ORDER}={BY_BUS} to count as nvidia-smi does, or name GPUs by UUID in {VARIABLE}."


def unclear_cause(setting: str) -> str:
    """Why numbers in the variable do not say which GPUs are meant."""
    return (
        f"{setting} counts GPUs in CUDA's default order, the fastest first, and CUDA alone knows that order for the "
        "unlike GPUs of this machine."
    )


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """The GPUs of a machine as a CUDA program started here would see them.

    Attributes:
        devices: The visible ones in CUDA's order, `Device.index` counting them; then the hidden ones.
        problems: What is wrong with the variable, a sentence each.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...] = ()


def visible_gpus(
    gpus: Sequence[Device],
    speeds: Mapping[str, float],
    environment: Mapping[str, str],
    find_mig: Callable[[str], Device | None],
) -> VisibleGpus:
    """Applies `CUDA_VISIBLE_DEVICES` as CUDA does: the first entry that names no GPU ends the list.

    Args:
        gpus: All GPUs, in the order of the PCI bus.
        speeds: Cores × clock by UUID, where the driver says.
        environment: The process's variables.
        find_mig: Looks up a MIG device by its UUID, which is in no list of GPUs.
    """
    value = environment.get(VARIABLE)
    if value is None:
        return VisibleGpus(tuple(gpus))
    setting = f"{VARIABLE}={value}" if value.strip() else f'{VARIABLE}=""'
    by_bus = environment.get(ORDER, "").strip().upper() == BY_BUS
    ordered = list(gpus) if by_bus else _fastest_first(gpus, speeds)
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    if _depends_on_order(entries, gpus) and not (by_bus or len(gpus) == 1 or _is_order_known(ordered, speeds)):
        problem = f"{unclear_cause(setting)} {UNCLEAR_STEP}"
        return VisibleGpus(tuple(replace(gpu, hidden_by=setting, is_unclear=True) for gpu in gpus), (problem,))
    chosen, problems = _chosen(entries, ordered, find_mig, setting)
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


def _fastest_first(gpus: Sequence[Device], speeds: Mapping[str, float]) -> list[Device]:
    return sorted(gpus, key=lambda gpu: (gpu.compute_capability or (0, 0), speeds.get(gpu.uuid, 0.0)), reverse=True)


def _depends_on_order(entries: Sequence[str], gpus: Sequence[Device]) -> bool:
    """Whether numbers leave out some of the GPUs: with all of them visible only their numbers would differ."""
    numbers = {int(found[0]) for entry in entries if (found := _ORDINAL.match(entry))}
    return any(0 <= number < len(gpus) for number in numbers) and not numbers >= set(range(len(gpus)))


def _is_order_known(ordered: Sequence[Device], speeds: Mapping[str, float]) -> bool:
    """Among GPUs of one kind the order does not matter; among others each must be clearly slower than the one before.

    CUDA's guide promises only that the fastest comes first, so a third kind of GPU leaves the order open.
    """
    kinds = list(dict.fromkeys((gpu.name, gpu.memory_bytes) for gpu in ordered))
    if len(kinds) == 1:
        return True
    if len(kinds) > 2 or (ordered[0].name, ordered[0].memory_bytes) == (ordered[1].name, ordered[1].memory_bytes):
        return False
    first, second = ordered[0], ordered[1]
    if first.compute_capability is None or second.compute_capability is None:
        return False
    return speeds.get(first.uuid, 0.0) >= _CLEARLY * speeds.get(second.uuid, float("inf"))
