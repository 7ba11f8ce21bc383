"""`rankdeck devices` and `rankdeck recipes`: what this machine can train on, what it can train, a new recipe."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from core.cli.terminal import Terminal
from core.cli.words import UNKNOWN, gibibytes, number
from core.devices import DeviceMonitor, DeviceSample
from core.errors import UsageError
from core.new_recipe import new_recipe
from core.recipes import Recipe, find_recipes, user_recipes_folder


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
    for device in found:
        error = samples[device.uuid].error if device.uuid in samples else None
        if error:
            terminal.warn(f"{device.kind}:{device.index} ({device.name}): {error}")
    if problem:
        terminal.warn(problem)
    return 0


def recipes(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lists every recipe; a broken one with what is wrong with it. Or starts a new one.

    Raises:
        RankdeckError: The new one has no name or a bad one, its folder is there, or the disk refuses.
    """
    if arguments.action == "new":
        return _new_recipe(arguments, terminal)
    if arguments.folder is not None:
        raise UsageError("--folder belongs to a new recipe.", "Write: rankdeck recipes new NAME --folder PATH")
    found = find_recipes()
    if arguments.json:
        terminal.json([_recipe_values(recipe) for recipe in found])
    else:
        terminal.table(
            ("RECIPE", "MODES", "WHAT IT IS"),
            [(recipe.name, ", ".join(recipe.modes), recipe.problem or recipe.description) for recipe in found],
        )
    return 0


def _new_recipe(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if not arguments.name:
        raise UsageError("The new recipe has no name.", "Write one: rankdeck recipes new my-model")
    made = new_recipe(arguments.name, Path(arguments.folder) if arguments.folder else None)
    if arguments.json:
        terminal.json({"name": made.name, "folder": str(made)})
        return 0
    listed = next((recipe for recipe in find_recipes() if recipe.folder == made), None)
    terminal.say(f"Made {made}: recipe.toml is its form, train.py its forty lines.")
    named = made.name if listed else f'"{made}"'
    terminal.say(f"Train it: rankdeck train --recipe {named}")
    if not listed:
        terminal.say(f"Recipes in {user_recipes_folder()} are listed and offered by their names.")
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
