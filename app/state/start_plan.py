"""Start plan: what pressing Start will do, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.state.draft import CheckedDraft
from core.config.mode import Mode
from core.data.dataset import NO_DATASET, STDLIB
from core.machine.devices import Device

HOW: Final = {
    Mode.DDP: " together (DDP)",
    Mode.INDEPENDENT: " independently",
    Mode.ZERO: " with ZeRO",
    Mode.FSDP: " with FSDP",
}
"""How several devices train, by mode."""


def plan_text(checked: CheckedDraft, devices: Sequence[Device]) -> str:
    """What pressing Start will do on the ticked devices, in a sentence or two."""
    run = checked.run
    if run is None:
        return checked.waiting or "Fix the marked settings first."
    config, on = run.config, _device_text(devices)
    if run.recipe.self_contained:
        program = str(config.options.get("script") or config.options.get("module")).replace("\\", "/")
        return f"Start runs {program.rpartition('/')[2]} on {on}."
    phrases = {STDLIB: " on Python's standard library,", NO_DATASET: ""}
    dataset = phrases.get(config.dataset_file, f" on {config.dataset_file},")
    text = f"Start trains {run.recipe.title}{dataset} on {on}{HOW.get(run.mode, '')}."
    return text + (" Nothing is downloaded." if config.dataset_file == STDLIB else "")


def _device_text(devices: Sequence[Device]) -> str:
    if devices and all(device.kind == "cpu" for device in devices):
        return f"{len(devices)} CPU device{'s' if len(devices) > 1 else ''}"
    return f"{len(devices)} devices" if len(devices) > 1 else devices[0].name if devices else "no device"
