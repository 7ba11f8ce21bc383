"""Time record of a run: the step that was predicted when an attempt begins, and those that its ranks report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.estimate.find_time import known_time
from core.estimate.prices import NO_PRICES
from core.estimate.probe import known_figures
from core.estimate.shape import run_shape
from core.estimate.speed import estimate_times, time_of
from core.estimate.time_history import RunTime
from core.launch.resolved import ResolvedRun

_FIRST: Final = 8
"""Steps of a rank after which the record is written for the first time; then whenever they have doubled."""


class TimeRecord:
    """Keeps `time.json`. Called on the event loop; reads and writes on the disk thread."""

    def __init__(self, folder: Path, disk: Executor) -> None:
        self._folder = folder
        self._disk = disk
        self._kept = RunTime()
        self._due = _FIRST

    def begin(self, run: ResolvedRun) -> dict[str, float | None]:
        """An attempt begins; to be called on the disk thread.

        Returns:
            What was predicted, as fields of the launch event; None where it is not known.
        """
        self._kept, self._due = RunTime(), _FIRST
        if not run.recipe.self_contained:
            self._kept = _predicted(run, self._folder.parent)
        kept = self._kept
        return {
            "predicted_step_s": kept.predicted_step_s,
            "predicted_speedup": kept.predicted_speedup,
            "one_samples_per_s": kept.one_samples_per_s,
        }

    def note(self, rank: int, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self._kept.shape:
            return
        for line in lines:
            if line["event"] == "step":
                self._kept = self._kept.with_line(rank, line)
        own = self._kept.ranks.get(rank)
        if own is not None and own.heard >= self._due:
            self._due = 2 * own.heard
            self.write()

    def write(self) -> None:
        if self._kept.shape:
            self._disk.submit(self._kept.write, self._folder)


def _predicted(run: ResolvedRun, runs_dir: Path) -> RunTime:
    """The record before the first step; a folder of runs that cannot be read predicts nothing."""
    shape, figures = run_shape(run), known_figures(run)
    if figures is None:
        return RunTime(shape)
    try:
        times = estimate_times(run, figures, known_time(run, runs_dir), NO_PRICES)
    except RankdeckError:
        return RunTime(shape)
    own, one = time_of(times, run), times[0]
    return RunTime(shape, own.source, own.step_s, own.samples_per_s, own.speedup, one.samples_per_s)
