"""Predictions of a run: predicted memory and time at the start of an attempt, beside the ranks' measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.host.ranks import Rank
from core.host.watches.watch import Watch
from core.launch.resolved import ResolvedRun
from core.measure.estimate.free import Free
from core.measure.estimate.history import EVENT as MEMORY_EVENT
from core.measure.estimate.history import RunMemory, RunTime
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.probe import known_baselines, known_figures
from core.measure.estimate.shape import run_shape
from core.measure.estimate.speed import estimate_times, time_of
from core.measure.estimate.steps import known_time

# Steps of a rank after which the times are written for the first time; then whenever they have doubled.
_FIRST: Final = 8


class Predictions(Watch):
    def __init__(self, folder: Path, disk: Executor) -> None:
        self._folder = folder
        self._disk = disk
        self._memory = RunMemory()
        self._time = RunTime()
        self._due = _FIRST

    def predict(self, run: ResolvedRun) -> dict[str, float | None]:
        """Begin an attempt of `run`, on the disk thread; return the predictions as fields of the launch event."""
        self._memory, self._time, self._due = RunMemory(), RunTime(), _FIRST
        if not run.recipe.self_contained:
            self._memory, self._time = _predicted_memory(run), _predicted_time(run, self._folder.parent)
        return {
            "predicted_bytes": self._memory.predicted_bytes,
            "predicted_step_s": self._time.predicted_step_s,
            "predicted_speedup": self._time.predicted_speedup,
            "one_samples_per_s": self._time.one_samples_per_s,
        }

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        for line in lines:
            if line["event"] == MEMORY_EVENT:
                self._memory = self._memory.with_peaks(rank.number, line)
                self._disk.submit(self._memory.write, self._folder)
            elif line["event"] == "step" and self._time.shape:
                self._time = self._time.with_line(rank.number, line)
        own = self._time.ranks.get(rank.number)
        if own is not None and own.heard >= self._due:
            self._due = 2 * own.heard
            self._write_time()

    async def close(self) -> None:
        self._write_time()

    def _write_time(self) -> None:
        if self._time.shape:
            self._disk.submit(self._time.write, self._folder)


def _predicted_memory(run: ResolvedRun) -> RunMemory:
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None or not figures.is_measured:
        return RunMemory()
    made = estimate_run(run, figures, baselines, Free())
    return RunMemory(made.variant.name, made.largest_peak)


def _predicted_time(run: ResolvedRun, runs_dir: Path) -> RunTime:
    """The record before the first step; without a readable folder of runs it predicts nothing."""
    shape, figures = run_shape(run), known_figures(run)
    if figures is None:
        return RunTime(shape)
    try:
        times = estimate_times(run, figures, known_time(run, runs_dir))
    except RankdeckError:
        return RunTime(shape)
    own, one = time_of(times, run), times[0]
    return RunTime(shape, own.source, own.step_s, own.samples_per_s, own.speedup, one.samples_per_s)
