"""Made-up trials of a run on two CPU devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.measure.tune.choice import Choice
from core.measure.tune.search import Result, next_trial
from core.recipes.catalog import get_recipe

CONFIG = RunConfig(batch_size=2, global_batch_size=32, precision="fp32", options={"grad_checkpointing": False})
DEVICES = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]
START = Choice(2, 8, "auto", False)


def run(mode: Mode = Mode.DDP, **changes: object) -> ResolvedRun:
    """MiniGPT on both."""
    config = CONFIG.replace(mode=mode, **changes)
    return resolve_on(config, get_recipe("minigpt"), DEVICES, Platform("linux", "2.13.0", None, 8))


# Share of each rank: 16 samples, in micro-batches of 2.
RUN = run()


def result(choice: Choice, speed: float = 100.0, exchange: str = "shared") -> Result:
    return Result(choice, "measured", speed, 32 / speed, exchange)


def searched(start: Choice, answer: Callable[[Choice], Result]) -> list[Result]:
    """All trials of a search whose trials come out as `answer` says."""
    results: list[Result] = []
    while (choice := next_trial(start, results)) is not None:
        results.append(replace(answer(choice), choice=choice))
        assert len(results) < 40
    return results
