"""A `ResolvedRun` on CPU devices, for tests of what follows from one."""

from __future__ import annotations

from pathlib import Path

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.manifest import Recipe

RECIPE = Recipe("minigpt", "MiniGPT", "", Path("recipes") / "minigpt")


def resolved_run(config: RunConfig, mode: Mode | str, ranks: int) -> ResolvedRun:
    """The run on so many devices in this mode."""
    devices = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(ranks)]
    return resolve_on(config.replace(mode=Mode(mode)), RECIPE, devices, Platform("linux", "2.13.0", None, 8))
