"""From what `--devices` took to devices, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.devices.cpu import cpu_slots
from core.devices.model import Device
from core.devices.visible import UNCLEAR_STEP, unclear_cause
from core.errors import ConfigError

MAX_CPU_SLOTS: Final = 64
_CPU: Final = re.compile(r"cpu(?::(\d+))?", re.IGNORECASE)
_CUDA: Final = re.compile(r"(?:cuda:)?(\d+)", re.IGNORECASE)


def resolve_devices(texts: Sequence[str], available: Sequence[Device]) -> list[Device]:
    """The devices that are meant, in the order they are named; rank r trains on the r-th.

    Args:
        texts: ``auto`` (every GPU, or one CPU slot where there is none), ``cpu:N`` (N slots), ``cuda:0`` or ``0``
            (by place), a GPU's UUID or the beginning of one. Several slots may be named one by one: cpu:0, cpu:1.
        available: What `DeviceMonitor.devices` offers.

    Raises:
        ConfigError: Nothing is named, something that is not there, or something twice.
    """
    wanted = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if not wanted:
        raise _wrong("The list of devices names nothing.", available)
    gpus = [device for device in available if device.kind == "cuda" and not device.hidden_by]
    if not all(_CPU.fullmatch(text) for text in wanted):
        check_clear(available)
    if len(wanted) == 1 and wanted[0].lower() == "auto":
        return gpus or cpu_slots(1)
    slots = [text for text in wanted if _CPU.fullmatch(text)]
    if len(slots) == 1:
        chosen_slots = _slots_by_count(slots[0], available)
    else:
        chosen_slots = [device for text in slots for device in _slot_by_number(text, available)]
    chosen: list[Device] = []
    for text in wanted:
        if _CPU.fullmatch(text):
            chosen += chosen_slots
            chosen_slots = []
        else:
            chosen.append(_gpu(text, gpus, available))
    for device in chosen:
        if chosen.count(device) > 1:
            raise _wrong(f"{device.uuid} ({device.name}) is named twice.", available)
    return chosen


def check_clear(available: Sequence[Device]) -> None:
    """Refuses numbers in `CUDA_VISIBLE_DEVICES` of which it is not known which GPUs they mean.

    Raises:
        ConfigError: Says how to write it so that it is.
    """
    unclear = next((device.hidden_by for device in available if device.is_unclear), "")
    if unclear:
        raise ConfigError("devices", unclear_cause(unclear), UNCLEAR_STEP)


def device_texts(devices: Sequence[Device]) -> tuple[str, ...]:
    """What names exactly these devices in a `RunConfig`: GPUs by UUID, CPU slots by their number (``cpu:2``)."""
    gpus = tuple(device.uuid for device in devices if device.kind == "cuda")
    slots = sum(device.kind == "cpu" for device in devices)
    return (*gpus, f"cpu:{slots}") if slots else gpus


def _slots_by_count(text: str, available: Sequence[Device]) -> list[Device]:
    found = _CPU.fullmatch(text)
    count = int(found[1]) if found and found[1] is not None else 1
    if count < 1:
        raise _wrong(f"{text} names no CPU slot: the number says how many.", available)
    if count > MAX_CPU_SLOTS:
        raise _wrong(f"{text} names {count} CPU slots; {MAX_CPU_SLOTS} is the most.", available)
    return cpu_slots(count)


def _slot_by_number(text: str, available: Sequence[Device]) -> list[Device]:
    found = _CPU.fullmatch(text)
    number = int(found[1]) if found and found[1] is not None else 0
    if number >= MAX_CPU_SLOTS:
        raise _wrong(f"{text} is no CPU slot; the last is cpu:{MAX_CPU_SLOTS - 1}.", available)
    return [cpu_slots(number + 1)[number]]


def _gpu(text: str, gpus: Sequence[Device], available: Sequence[Device]) -> Device:
    by_place = _CUDA.fullmatch(text)
    found = [gpu for gpu in gpus if by_place and gpu.index == int(by_place[1])]
    if not found and not text.lower().startswith("cuda"):
        beginning = text.lower().removeprefix("gpu-")
        found = [gpu for gpu in gpus if beginning and gpu.uuid.lower().removeprefix("gpu-").startswith(beginning)]
    if not found:
        raise _wrong(_absence(text, available), available)
    if len(found) > 1:
        raise _wrong(f"{text!r} is the beginning of {len(found)} UUIDs.", available)
    return found[0]


def _absence(text: str, available: Sequence[Device]) -> str:
    """Why a text names no GPU: there is none of that name, or `CUDA_VISIBLE_DEVICES` hides it."""
    hidden = [device for device in available if device.hidden_by]
    if not hidden:
        return f"There is no device {text!r} on this machine."
    setting, visible = hidden[0].hidden_by, sum(d.kind == "cuda" and not d.hidden_by for d in available)
    beginning = text.lower().removeprefix("gpu-")
    named = next((gpu for gpu in hidden if gpu.uuid.lower().removeprefix("gpu-").startswith(beginning)), None)
    if named is not None and not _CUDA.fullmatch(text):
        return f"--devices names {text} ({named.name}), and {setting} hides it."
    left = "no GPU" if visible == 0 else "cuda:0 alone" if visible == 1 else f"cuda:0 to cuda:{visible - 1}"
    return f"--devices names {text}, and {setting} leaves {left} visible."


def _wrong(cause: str, available: Sequence[Device]) -> ConfigError:
    gpus = [
        f"cuda:{device.index} ({device.name}, {device.uuid})"
        for device in available
        if device.kind == "cuda" and not device.hidden_by
    ]
    offered = f"There are: {', '.join(gpus)}, or cpu:N." if gpus else "Name CPU slots: cpu:1, cpu:2 …"
    return ConfigError("devices", cause, offered)
