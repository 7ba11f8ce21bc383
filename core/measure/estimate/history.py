"""Predicted and measured memory of runs, in `memory.json` of a run's folder."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.records import RecordError, Text, Whole, read_record
from core.run_folder.store import RunEntry, list_runs

MEMORY: Final = "memory.json"
# Metrics lines of this kind carry a rank's peaks (`workers.host_link.peak_memory`).
EVENT: Final = "memory"
_LIMIT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RunMemory:
    """Memory of a run's newest measured attempt.

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
        """Add a rank's report; peaks only grow."""
        news = {name: value for name, value in line.items() if name.endswith("_bytes") and isinstance(value, int)}
        before = self.ranks.get(rank, {})
        peaks = {name: max(news.get(name, 0), before.get(name, 0)) for name in {*news, *before}}
        return replace(self, ranks={**self.ranks, rank: peaks})

    def write(self, folder: Path) -> None:
        """Write the record; a disk that refuses costs it, not the run."""
        document = {"format": "rankdeck-memory", "version": 1, **dataclasses.asdict(self)}
        with contextlib.suppress(OSError, RankdeckError):
            write_atomic(folder / MEMORY, json.dumps(document, indent=1) + "\n", durable=False)


def read_memory(folder: Path) -> RunMemory | None:
    """Read the record in a run's folder; None where there is none, or it cannot be read."""
    try:
        return read_record(RunMemory, read_json(folder / MEMORY, limit_bytes=_LIMIT_BYTES))
    except (RecordError, RankdeckError, OSError):
        return None


def device_peak(peaks: Mapping[str, Any]) -> int | None:
    """Return a rank's peak on its device: PyTorch's reserve on a GPU, the whole process on a CPU device."""
    peak = peaks.get("reserved_bytes", peaks.get("rss_bytes"))
    return peak if isinstance(peak, int) else None


def history(runs_dir: Path) -> list[dict[str, Any]]:
    """Return one row for each run that kept its memory, newest first."""
    return [row for entry in list_runs(runs_dir) if (row := _row(entry)) is not None]


def _row(entry: RunEntry) -> dict[str, Any] | None:
    memory = read_memory(entry.path)
    if memory is None:
        return None
    return {
        "run": entry.path.name,
        "recipe": entry.state.recipe if entry.state else "",
        "mode": memory.mode or (str(entry.state.mode) if entry.state else ""),
        "ranks": len(memory.ranks),
        "predicted_bytes": memory.predicted_bytes,
        "measured_bytes": memory.measured_bytes,
        "error": memory.error,
    }
