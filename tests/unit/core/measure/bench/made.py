"""Made-up benchmarks of MiniGPT on CPU devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.measure.bench.contenders import Kind, find_contenders
from core.measure.bench.report import Bench, Measured
from core.measure.trial import RankAnswer, SumTimes, TrialResult
from core.recipes.catalog import get_recipe

PLATFORM = Platform("linux", "2.13.0", None, 8)


def run(devices: int = 2, mode: Mode = Mode.DDP, **changes: object) -> ResolvedRun:
    """Micro-batch 4 on each device."""
    config = RunConfig(batch_size=4, precision="fp32", mode=mode).replace(**changes)
    machine = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(devices)]
    return resolve_on(config, get_recipe("minigpt"), machine, PLATFORM)


def bench(kind: Kind, turns: Mapping[int, Sequence[TrialResult]], **changes: object) -> Bench:
    """Contenders by their place, each with its turns; one that failed is the last of them."""
    measured = []
    for place, contender in enumerate(find_contenders(kind, run(**changes))):  # type: ignore[arg-type]
        own = turns.get(place, ())
        made = tuple(turn for turn in own if turn.outcome == "measured")
        failure = next((turn for turn in own if turn.outcome != "measured"), None)
        measured.append(Measured(contender, made, failure))
    return Bench(kind, run(**changes), tuple(measured))  # type: ignore[arg-type]


def steps(*seconds: float) -> list[TrialResult]:
    """Turns whose steps take so long."""
    return [TrialResult("measured", (one_s,), "shared") for one_s in seconds]


def sums(*ranks: Sequence[SumTimes]) -> TrialResult:
    """A turn in which each rank saw such sums."""
    return TrialResult("measured", answers=tuple(RankAnswer("measured", sums=list(rank)) for rank in ranks))


KILLED = TrialResult("killed", cause="The process of rank 1 killed (SIGKILL).")
# Two devices are nearly as fast for each of them; the second turn was slow for both.
WEAK = {0: steps(0.10, 0.20, 0.10), 1: steps(0.11, 0.21, 0.12)}
MB = 1 << 20
SUMS = sums(
    [SumTimes("gloo", MB, True, [0.002, 0.001]), SumTimes("shared", 4096, False, [1e-4, 1e-4])],
    [SumTimes("gloo", MB, True, [0.001, 0.004]), SumTimes("shared", 4096, False, [1e-4, 1e-4])],
)
