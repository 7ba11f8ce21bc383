"""Predicted and measured memory and time of runs, in `memory.json` and `time.json` of a run's folder."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.records import Limits, RecordError, Text, Whole, read_record
from core.run_folder.store import RunEntry, list_runs

MEMORY: Final = "memory.json"
TIME: Final = "time.json"
# Metrics lines of this kind carry a rank's peaks (`workers.host_link.peak_memory`).
EVENT: Final = "memory"
# A rank's first steps, in which buffers are made and caches fill, do not count.
SETTLING: Final = 3
# Counted steps that make a run's speed.
ENOUGH: Final = 5
_LIMIT_BYTES: Final = 1 << 20
_LARGEST: Final = 1e15

Amount = Annotated[float, Limits(0, _LARGEST)]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PastRun:
    """Speed of an earlier run of the same shape: mean seconds of a step, samples a second of all its ranks."""

    step_s: float
    samples_per_s: float


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
        _write(folder / MEMORY, "rankdeck-memory", self)


@dataclass(frozen=True, slots=True)
class RankTime:
    """The reported steps of one rank since the attempt began, and the sums over those that count."""

    heard: Whole = 0
    counted: Whole = 0
    seconds: Amount = 0.0
    samples: Amount = 0.0

    def with_step(self, step_s: float, samples: float) -> RankTime:
        if self.heard < SETTLING:
            return replace(self, heard=self.heard + 1)
        return RankTime(self.heard + 1, self.counted + 1, self.seconds + step_s, self.samples + samples)


@dataclass(frozen=True, slots=True)
class RunTime:
    """Time of a run's newest attempt.

    Attributes:
        shape: See `core.measure.estimate.shape.run_shape`.
        source: Of the prediction: "probe" or "runs"; empty: nothing was predicted.
        one_samples_per_s: One device's by itself, to which speed-ups refer.
    """

    shape: Text = ""
    source: Text = ""
    predicted_step_s: Amount | None = None
    predicted_samples_per_s: Amount | None = None
    predicted_speedup: Amount | None = None
    one_samples_per_s: Amount | None = None
    ranks: dict[int, RankTime] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        """Whether each rank has made enough steps."""
        return bool(self.ranks) and all(rank.counted >= ENOUGH and rank.seconds > 0 for rank in self.ranks.values())

    @property
    def step_s(self) -> float | None:
        """Achieved: mean seconds of a step, over the ranks; None before there are enough."""
        if not self.is_settled:
            return None
        return sum(rank.seconds / rank.counted for rank in self.ranks.values()) / len(self.ranks)

    @property
    def samples_per_s(self) -> float | None:
        """Achieved: of all ranks together."""
        return sum(rank.samples / rank.seconds for rank in self.ranks.values()) if self.is_settled else None

    @property
    def speedup(self) -> float | None:
        """Achieved: against one device as it was predicted."""
        rate = self.samples_per_s
        return rate / self.one_samples_per_s if rate is not None and self.one_samples_per_s else None

    @property
    def error(self) -> float | None:
        """Predicted seconds of a step ÷ achieved - 1."""
        achieved = self.step_s
        return self.predicted_step_s / achieved - 1 if self.predicted_step_s is not None and achieved else None

    def with_line(self, rank: int, line: Mapping[str, Any]) -> RunTime:
        """Add a step that a rank reported."""
        step_s, rate = line.get("step_time_s"), line.get("samples_per_s")
        if not isinstance(step_s, int | float) or not isinstance(rate, int | float) or not 0 < step_s < _LARGEST:
            return self
        samples = min(_LARGEST, max(0.0, step_s * rate))
        return replace(self, ranks={**self.ranks, rank: self.ranks.get(rank, RankTime()).with_step(step_s, samples)})

    def write(self, folder: Path) -> None:
        _write(folder / TIME, "rankdeck-time", self)


def read_memory(folder: Path) -> RunMemory | None:
    """Read the record in a run's folder; None where there is none, or it cannot be read."""
    return _read(folder / MEMORY, RunMemory)


def read_time(folder: Path) -> RunTime | None:
    return _read(folder / TIME, RunTime)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return read_record(kind, read_json(path, limit_bytes=_LIMIT_BYTES))
    except (RecordError, RankdeckError, OSError):
        return None


def _write(path: Path, name: str, record: RunMemory | RunTime) -> None:
    """A disk that refuses costs the record, not the run."""
    document = {"format": name, "version": 1, **dataclasses.asdict(record)}
    with contextlib.suppress(OSError, RankdeckError):
        write_atomic(path, json.dumps(document, indent=1) + "\n", durable=False)


def device_peak(peaks: Mapping[str, Any]) -> int | None:
    """Return a rank's peak on its device: PyTorch's reserve on a GPU, the whole process on a CPU device."""
    peak = peaks.get("reserved_bytes", peaks.get("rss_bytes"))
    return peak if isinstance(peak, int) else None


def history(runs_dir: Path) -> list[dict[str, Any]]:
    """Return one row for each run that kept its memory or time, newest first."""
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
