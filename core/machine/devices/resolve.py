"""Devices from the texts of `--devices`, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.config.device_names import cpu_numbers, cpu_texts, is_cpu, with_counts
from core.errors import ConfigError
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.machine.devices.visible import UNCLEAR_STEP, unclear_cause

_CUDA: Final = re.compile(r"(?:cuda:)?(\d+)", re.IGNORECASE)


def resolve_devices(texts: Sequence[str], available: Sequence[Device]) -> list[Device]:
    """Find the named devices, in the order of their texts; rank r trains on the r-th.

    Args:
        texts: ``auto`` (every GPU, or one CPU device where there is none), ``cpu:0`` and ``cpux2`` (see
            `core.config.device_names`), ``cuda:0`` or ``0`` (by place), a GPU's UUID or the beginning of one.

    Raises:
        ConfigError: Nothing is named, something that is not there, or something twice.
    """
    wanted = with_counts([part.strip() for text in texts for part in text.split(",") if part.strip()])
    if not wanted:
        raise _wrong("The list of devices is empty.", available)
    gpus = [device for device in available if device.kind == "cuda" and not device.hidden_by]
    if not all(is_cpu(text) for text in wanted):
        check_clear(available)
    if len(wanted) == 1 and wanted[0].lower() == "auto":
        return gpus or cpu_slots(1)
    numbers = {text: cpu_numbers(text) for text in wanted if is_cpu(text)}
    slots = cpu_slots(1 + max(map(max, numbers.values()))) if numbers else []
    chosen: list[Device] = []
    for text in wanted:
        chosen += [slots[number] for number in numbers[text]] if is_cpu(text) else [_gpu(text, gpus, available)]
    seen: set[str] = set()
    for device in chosen:
        if device.uuid in seen:
            raise _wrong(f"{device.uuid} ({device.name}) is named twice.", available)
        seen.add(device.uuid)
    return chosen


def check_clear(available: Sequence[Device]) -> None:
    """Refuse ambiguous numbers in `CUDA_VISIBLE_DEVICES`; the `ConfigError` says how to write it."""
    unclear = next((device.hidden_by for device in available if device.is_unclear), "")
    if unclear:
        raise ConfigError("devices", unclear_cause(unclear), UNCLEAR_STEP)


def device_texts(devices: Sequence[Device]) -> tuple[str, ...]:
    """Exact names of these devices in a `RunConfig`: GPUs by UUID, CPU devices as `cpu_texts` writes them."""
    gpus = tuple(device.uuid for device in devices if device.kind == "cuda")
    return (*gpus, *cpu_texts([device.index for device in devices if device.kind == "cpu"]))


def _gpu(text: str, gpus: Sequence[Device], available: Sequence[Device]) -> Device:
    by_place = _CUDA.fullmatch(text)
    found = [gpu for gpu in gpus if by_place and gpu.index == int(by_place[1])]
    if not found and not text.lower().startswith("cuda"):
        beginning = text.lower().removeprefix("gpu-")
        found = [gpu for gpu in gpus if beginning and gpu.uuid.lower().removeprefix("gpu-").startswith(beginning)]
    if not found:
        raise _wrong(_absence(text, available), available)
    if len(found) > 1:
        raise _wrong(f"{text!r} matches {len(found)} UUIDs.", available)
    return found[0]


def _absence(text: str, available: Sequence[Device]) -> str:
    """Explain a text that names no GPU: there is none of that name, or `CUDA_VISIBLE_DEVICES` hides it."""
    hidden = [device for device in available if device.hidden_by]
    if not hidden:
        return f"There is no device {text!r} on this machine."
    setting, visible = hidden[0].hidden_by, sum(d.kind == "cuda" and not d.hidden_by for d in available)
    beginning = text.lower().removeprefix("gpu-")
    named = next((gpu for gpu in hidden if gpu.uuid.lower().removeprefix("gpu-").startswith(beginning)), None)
    if named is not None and not _CUDA.fullmatch(text):
        return f"{text} ({named.name}) is hidden by {setting}."
    left = "no GPU" if visible == 0 else "cuda:0 alone" if visible == 1 else f"cuda:0 to cuda:{visible - 1}"
    return f"There is no {text}: {setting} leaves {left} visible."


def _wrong(cause: str, available: Sequence[Device]) -> ConfigError:
    gpus = [
        f"cuda:{device.index} ({device.name}, {device.uuid})"
        for device in available
        if device.kind == "cuda" and not device.hidden_by
    ]
    offered = f"There are: {', '.join(gpus)}, or CPU devices (cpux2)." if gpus else "Name CPU devices: cpu:0, or cpux2."
    return ConfigError("devices", cause, offered)
