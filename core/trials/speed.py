"""Speed of a run from the seconds that each rank's steps take. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.mode import Mode
from core.config.sync import resolve_synchronisation
from core.launch.resolved import ResolvedRun


def samples_per_s(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None = None) -> float:
    """Samples a second of all ranks together.

    Args:
        run: With the settings that were tried.
        steps_s: Seconds of a step on each rank.
        round_s: Seconds of a round that synchronises independent ranks.
    """
    times = _with_rounds(run, steps_s, round_s)
    if run.mode == Mode.INDEPENDENT and round_s is None:
        return sum(run.batch.global_ / time_s for time_s in times)
    return run.replica_groups * run.batch.global_ / max(times)


def step_seconds(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None = None) -> float:
    """Seconds of a step: the slowest rank's, where ranks wait for each other; else the mean."""
    times = _with_rounds(run, steps_s, round_s)
    return sum(times) / len(times) if run.mode == Mode.INDEPENDENT and round_s is None else max(times)


def _with_rounds(run: ResolvedRun, steps_s: Sequence[float], round_s: float | None) -> list[float]:
    rule = resolve_synchronisation(run.config) if run.mode == Mode.INDEPENDENT and round_s is not None else None
    each_s = 0.0 if rule is None or round_s is None else round_s / rule.every
    return [step_s + each_s for step_s in steps_s]
