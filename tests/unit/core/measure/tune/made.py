"""Made-up trials of a run on two CPU devices."""

from __future__ import annotations

from collections.abc import Callable

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.measure.trial import Outcome
from core.measure.tune.tuned import Result, next_trial
from core.recipes.catalog import get_recipe

CONFIG = RunConfig(batch_size=2, global_batch_size=32, precision="fp32")
DEVICES = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]


def run(mode: Mode = Mode.DDP, **changes: object) -> ResolvedRun:
    """MiniGPT on both."""
    config = CONFIG.replace(mode=mode, **changes)
    return resolve_on(config, get_recipe("minigpt"), DEVICES, Platform("linux", "2.13.0", None, 8))


# Share of each rank: 16 samples, in micro-batches of 2.
RUN = run()


def result(size: int, speed: float = 100.0, share: int = 16) -> Result:
    return Result(size, share // size, "measured", speed, 32 / speed)


def failed(size: int, outcome: Outcome, cause: str = "", share: int = 16) -> Result:
    return Result(size, share // size, outcome, cause=cause)


def searched(start: int, share: int, answer: Callable[[int], Result]) -> list[Result]:
    """All trials of a search whose trials come out as `answer` says."""
    results: list[Result] = []
    while (size := next_trial(start, share, results)) is not None:
        results.append(answer(size))
        assert len(results) < 40
    return results
