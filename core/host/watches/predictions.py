"""Predictions of a run: memory and time at the start of an attempt, and the memory that its ranks measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from core.host.ranks import Rank
from core.host.watches.watch import Watch
from core.launch.resolved import ResolvedRun
from core.measure.estimate.free import Free
from core.measure.estimate.history import EVENT as MEMORY_EVENT
from core.measure.estimate.history import RunMemory
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.probe import known_baselines, known_figures
from core.measure.estimate.speed import estimate_times, time_of
from core.measure.estimate.steps import known_time


class Predictions(Watch):
    def __init__(self, folder: Path, disk: Executor) -> None:
        self._folder = folder
        self._disk = disk
        self._memory = RunMemory()

    def predict(self, run: ResolvedRun) -> dict[str, float | None]:
        """Begin an attempt of `run`, on the disk thread; return the predictions as fields of the launch event."""
        self._memory = _predicted_memory(run)
        step_s, speedup, one = _predicted_time(run)
        return {
            "predicted_bytes": self._memory.predicted_bytes,
            "predicted_step_s": step_s,
            "predicted_speedup": speedup,
            "one_samples_per_s": one,
        }

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        for line in lines:
            if line["event"] == MEMORY_EVENT:
                self._memory = self._memory.with_peaks(rank.number, line)
                self._disk.submit(self._memory.write, self._folder)


def _predicted_memory(run: ResolvedRun) -> RunMemory:
    if run.recipe.self_contained:
        return RunMemory()
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None or not figures.is_complete:
        return RunMemory()
    made = estimate_run(run, figures, baselines, Free())
    return RunMemory(made.variant.name, made.largest_peak)


def _predicted_time(run: ResolvedRun) -> tuple[float | None, float | None, float | None]:
    """Return seconds of a step, speed-up, and samples a second of one device, as far as they are known."""
    figures = None if run.recipe.self_contained else known_figures(run)
    if figures is None:
        return None, None, None
    times = estimate_times(run, figures, known_time(run))
    own = time_of(times, run)
    return own.step_s, own.speedup, times[0].samples_per_s
