"""A `ResolvedRun` on CPU devices, and a host's ranks that train one, for tests of what follows from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.config import RunConfig
from core.config.mode import Mode
from core.host.ranks import Ranks
from core.launch.plan import RankCommand
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.manifest import Recipe

RECIPE = Recipe("minigpt", "MiniGPT", "", Path("recipes") / "minigpt")


def resolved_run(config: RunConfig, mode: Mode | str, ranks: int) -> ResolvedRun:
    devices = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(ranks)]
    return resolve_on(config.replace(mode=Mode.read(mode)), RECIPE, devices, Platform("linux", "2.13.0", None, 8))


def made_ranks(mode: Mode | str, ranks: int, *, self_contained: bool = False, log: Path = Path()) -> Ranks:
    run = resolved_run(RunConfig(), mode, ranks)
    run = replace(run, recipe=replace(RECIPE, self_contained=self_contained))
    return Ranks(run, [RankCommand(d.index, (), {}, (), Path(), log, d) for d in run.devices])
