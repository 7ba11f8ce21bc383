"""`rankdeck devices` and `rankdeck recipes`: lists of devices and recipes, a recipe's settings, a new recipe."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.errors import UsageError
from core.formatting import UNKNOWN, memory_size, number
from core.launch.mode import why_no_cuda
from core.machine.devices import Device, DeviceSample
from core.machine.devices.defaults import in_use_by
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.recipes.catalog import find_recipes, get_recipe, user_recipes_folder
from core.recipes.manifest import Recipe
from core.recipes.scaffold import new_recipe
from core.run_folder.device_users import DeviceUsers, live_hosts
from core.run_folder.record import RunRecord, notes_of
from core.run_folder.store import list_runs


def devices(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """List every device with its current figures; no driver and no GPU are answers, not errors."""
    platform = this_platform()
    entries = list_runs(chosen_runs_dir(arguments))
    live = [entry for entry in entries if entry.state is not None and entry.state.is_live]
    hosts = live_hosts(RunRecord(entry, notes_of(entry.path)) for entry in live)
    with DeviceMonitor(cpu_too=platform.is_cpu_only, with_processes=True) as monitor:
        found = monitor.devices()
        samples = {sample.uuid: sample for sample in DeviceUsers().name(monitor.sample(), hosts)}
        problem = monitor.problem
    if arguments.json:
        listed = [
            {
                **dataclasses.asdict(device),
                "sample": dataclasses.asdict(samples[device.uuid]) if device.uuid in samples else None,
            }
            for device in found
        ]
        terminal.json({"devices": listed, "problem": problem or why_no_cuda(found, platform)})
        return 0
    rows = [
        (
            UNKNOWN if device.hidden_by else f"{device.kind}:{device.index}",
            device.name,
            memory_size(device.memory_bytes),
            *_figures(samples.get(device.uuid)),
            _user(device, samples.get(device.uuid)),
            device.uuid,
        )
        for device in found
    ]
    terminal.table(("DEVICE", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "USED BY", "UUID"), rows)
    for device in found:
        error = samples[device.uuid].error if device.uuid in samples else None
        if error:
            terminal.warn(f"{device.kind}:{device.index} ({device.name}): {error}")
    hidden = [device for device in found if device.hidden_by and not device.is_unclear]
    if hidden:
        names = ", ".join(device.name for device in hidden)
        terminal.warn(f"{hidden[0].hidden_by} hides {names}. Runs do not use hidden GPUs.")
    for warning in (problem, why_no_cuda(found, platform)):
        if warning:
            terminal.warn(warning)
    return 0


def recipes(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """List the recipes, each broken one with its problem; or one's settings; or make a new one."""
    if arguments.which == "new":
        return _new_recipe(arguments, terminal)
    if arguments.folder is not None or arguments.name is not None:
        given = "--folder" if arguments.folder is not None else repr(arguments.name)
        raise UsageError(f"{given} applies only to new recipes.", "Write: rankdeck recipes new NAME --folder PATH")
    if arguments.which is not None:
        return _one_recipe(get_recipe(arguments.which), arguments, terminal)
    found = find_recipes()
    if arguments.json:
        terminal.json([_recipe_values(recipe) for recipe in found])
    else:
        terminal.table(
            ("RECIPE", "MODES", "DESCRIPTION"),
            [(recipe.name, ", ".join(recipe.modes), recipe.problem or recipe.description) for recipe in found],
        )
    return 0


def _one_recipe(recipe: Recipe, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Describe a recipe, with each field of its own as `--set` takes it."""
    if arguments.json:
        terminal.json(_recipe_values(recipe))
        return 0
    terminal.say(f"{recipe.title}: {recipe.problem or recipe.description}")
    terminal.say(f"Modes: {', '.join(recipe.modes)}")
    if recipe.requires:
        terminal.say(f"Packages: {', '.join(recipe.requires)}")
    if recipe.fields:
        terminal.say("The recipe's own settings, set with --set SETTING=VALUE:")
        rows = [
            (field.name, field.text(field.default) or UNKNOWN, field.allowed(), field.help) for field in recipe.fields
        ]
        terminal.table(("SETTING", "DEFAULT", "VALUES", "DESCRIPTION"), rows)
    return 0


def _new_recipe(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if not arguments.name:
        raise UsageError("The new recipe needs a name.", "Name it: rankdeck recipes new my-model")
    made = new_recipe(arguments.name, Path(arguments.folder) if arguments.folder else None)
    if arguments.json:
        terminal.json({"name": made.name, "folder": str(made)})
        return 0
    listed = next((recipe for recipe in find_recipes() if recipe.folder == made), None)
    terminal.say(f"Created {made}: recipe.toml defines its settings, train.py holds the code.")
    named = made.name if listed else f'"{made}"'
    terminal.say(f"Train it: rankdeck train --recipe {named}")
    if not listed:
        terminal.say(f"Recipes in {user_recipes_folder()} are found by name.")
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


def _user(device: Device, sample: DeviceSample | None) -> str:
    """The processes on a GPU: "python (pid 123), 69 GiB"; unknown for a CPU device."""
    if device.kind != "cuda" or sample is None or sample.error:
        return UNKNOWN
    return in_use_by(sample).removeprefix("in use by ") or "free"


def _recipe_values(recipe: Recipe) -> dict[str, object]:
    values = dataclasses.asdict(recipe)
    return {**values, "folder": str(recipe.folder), "defaults": dict(recipe.defaults)}
