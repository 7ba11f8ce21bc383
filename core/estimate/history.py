"""Memory of runs as it was predicted and measured: `memory.json` in a run's folder, and the error over all runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.estimate.time_history import RunTime, read_time
from core.files.atomic import read_json, write_atomic
from core.records import RecordError, Text, Whole, read_record
from core.run_folder.store import RunEntry, list_runs

MEMORY: Final = "memory.json"
EVENT: Final = "memory"
"""Metrics lines of this kind carry a rank's peaks (`workers.host_link.peak_memory`)."""
_FORMAT: Final = "rankdeck-memory"
_LIMIT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RunMemory:
    """One run's memory, of the attempt that was measured last.

    Attributes:
        mode: "ddp", "zero1", …; empty while nothing was predicted.
        predicted_bytes: Of the largest rank, before it started; None: its model had not been probed.
        ranks: Measured peaks of each rank, by name (`rss_bytes`, `allocated_bytes`, …).
    """

    mode: Text = ""
    predicted_bytes: Whole | None = None
    ranks: dict[int, dict[Text, Whole]] = field(default_factory=dict)

    @property
    def measured_bytes(self) -> int | None:
        """The peak of the largest rank on its device."""
        peaks = (device_peak(peaks) for peaks in self.ranks.values())
        return max((peak for peak in peaks if peak is not None), default=None)

    @property
    def error(self) -> float | None:
        """Predicted ÷ measured - 1."""
        measured = self.measured_bytes
        return self.predicted_bytes / measured - 1 if self.predicted_bytes is not None and measured else None

    def with_peaks(self, rank: int, line: Mapping[str, Any]) -> RunMemory:
        """With what a rank reported; peaks only grow."""
        news = {name: value for name, value in line.items() if name.endswith("_bytes") and isinstance(value, int)}
        before = self.ranks.get(rank, {})
        peaks = {name: max(news.get(name, 0), before.get(name, 0)) for name in {*news, *before}}
        return replace(self, ranks={**self.ranks, rank: peaks})

    def write(self, folder: Path) -> None:
        """Keeps it in a run's folder; a disk that refuses costs the record, not the run."""
        document = {"format": _FORMAT, "version": 1, **dataclasses.asdict(self)}
        try:
            write_atomic(folder / MEMORY, json.dumps(document, indent=1) + "\n", durable=False)
        except (OSError, RankdeckError):
            return


def device_peak(peaks: Mapping[str, Any]) -> int | None:
    """A rank's peak on its device: what PyTorch reserved of a GPU's memory, on a CPU device all of its process."""
    peak = peaks.get("reserved_bytes", peaks.get("rss_bytes"))
    return peak if isinstance(peak, int) else None


def read_memory(folder: Path) -> RunMemory | None:
    """What a run's folder keeps; None where there is nothing, or it cannot be read."""
    try:
        return read_record(RunMemory, read_json(folder / MEMORY, limit_bytes=_LIMIT_BYTES))
    except (RecordError, RankdeckError, OSError):
        return None


def history(runs_dir: Path) -> list[dict[str, Any]]:
    """One row for each run that kept its memory or time, newest first."""
    return [row for entry in list_runs(runs_dir) if (row := _row(entry)) is not None]


def _row(entry: RunEntry) -> dict[str, Any] | None:
    memory, time = read_memory(entry.path), read_time(entry.path)
    if memory is None and time is None:
        return None
    memory, time = memory or RunMemory(), time or RunTime()
    return {
        "run": entry.path.name,
        "recipe": entry.state.recipe if entry.state else "",
        "mode": memory.mode or (str(entry.state.mode) if entry.state else ""),
        "ranks": len(memory.ranks),
        "predicted_bytes": memory.predicted_bytes,
        "measured_bytes": memory.measured_bytes,
        "error": memory.error,
        "predicted_step_s": time.predicted_step_s,
        "measured_step_s": time.step_s,
        "time_error": time.error,
        "predicted_speedup": time.predicted_speedup,
        "measured_speedup": time.speedup,
        "predicted_from": time.source,
    }
