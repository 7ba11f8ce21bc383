"""Memory record of a run: what was predicted when an attempt begins, and the peaks that its ranks report."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from core.estimate.estimate import estimate_run
from core.estimate.free import Free
from core.estimate.history import RunMemory
from core.estimate.probe import known_baselines, known_figures
from core.launch.resolved import ResolvedRun


class MemoryRecord:
    """Keeps `memory.json`. Called on the event loop; reads and writes on the disk thread."""

    def __init__(self, folder: Path, disk: Executor) -> None:
        self._folder = folder
        self._disk = disk
        self._kept = RunMemory()

    def begin(self, run: ResolvedRun) -> dict[str, float | None]:
        """An attempt begins; to be called on the disk thread.

        Returns:
            The predicted peak of the largest rank, as a field of the launch event; None: its model was never probed.
        """
        self._kept = RunMemory()
        figures = None if run.recipe.self_contained else known_figures(run)
        baselines = known_baselines(run.platform)
        if figures is not None and baselines is not None and figures.is_measured:
            made = estimate_run(run, figures, baselines, Free())
            self._kept = RunMemory(made.name, made.largest_peak)
        return {"predicted_bytes": self._kept.predicted_bytes}

    def note(self, rank: int, line: Mapping[str, Any]) -> None:
        self._kept = kept = self._kept.with_peaks(rank, line)
        self._disk.submit(kept.write, self._folder)
