"""`rankdeck devices` and `rankdeck recipes`: what this machine can train on, and what it can train."""

from __future__ import annotations

import argparse
import dataclasses

from core.cli.terminal import Terminal
from core.cli.words import UNKNOWN, gibibytes, number
from core.devices import DeviceMonitor, DeviceSample
from core.recipes import Recipe, find_recipes


def devices(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lists every device with its figures of this moment; no driver and no GPU are answers, not errors."""
    with DeviceMonitor() as monitor:
        found = monitor.devices()
        samples = {sample.uuid: sample for sample in monitor.sample()}
        problem = monitor.problem
    if arguments.json:
        listed = [
            {
                **dataclasses.asdict(device),
                "sample": dataclasses.asdict(samples[device.uuid]) if device.uuid in samples else None,
            }
            for device in found
        ]
        terminal.json({"devices": listed, "problem": problem})
        return 0
    rows = [
        (
            f"{device.kind}:{device.index}",
            device.name,
            gibibytes(device.memory_bytes),
            *_figures(samples.get(device.uuid)),
            device.uuid,
        )
        for device in found
    ]
    terminal.table(("DEVICE", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "UUID"), rows)
    if problem:
        terminal.warn(problem)
    return 0


def recipes(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lists every recipe; a broken one with what is wrong with it."""
    found = find_recipes()
    if arguments.json:
        terminal.json([_recipe_values(recipe) for recipe in found])
    else:
        terminal.table(
            ("RECIPE", "MODES", "WHAT IT IS"),
            [(recipe.name, ", ".join(recipe.modes), recipe.problem or recipe.description) for recipe in found],
        )
    return 0


def _figures(sample: DeviceSample | None) -> tuple[str, str, str]:
    if sample is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    shown = (
        (sample.utilization_percent, "{} %"),
        (sample.temperature_celsius, "{} °C"),
        (sample.power_w, "{} W"),
    )
    busy, temperature, power = (
        UNKNOWN if value is None else form.format(number(round(value))) for value, form in shown
    )
    return busy, temperature, power


def _recipe_values(recipe: Recipe) -> dict[str, object]:
    values = dataclasses.asdict(recipe)
    return {**values, "folder": str(recipe.folder), "defaults": dict(recipe.defaults)}
