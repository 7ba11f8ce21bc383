"""Time of a run as it was predicted and achieved: `time.json` in its folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.records import Limits, RecordError, Text, Whole, read_record

TIME: Final = "time.json"
SETTLING: Final = 3
"""A rank's first steps, in which buffers are made and caches fill, do not count."""
ENOUGH: Final = 5
"""Counted steps that make a run's speed."""
TELLING: Final = 3
"""Runs whose predictions show how true predictions are."""
_FORMAT: Final = "rankdeck-time"
_LIMIT_BYTES: Final = 1 << 20
_LARGEST: Final = 1e15

Amount = Annotated[float, Limits(0, _LARGEST)]


@dataclass(frozen=True, slots=True)
class RankTime:
    """The steps of one rank, since the attempt began.

    Attributes:
        heard: Steps that it reported.
        counted: Those of them that count.
        seconds, samples: Of the counted ones, in sum.
    """

    heard: Whole = 0
    counted: Whole = 0
    seconds: Amount = 0.0
    samples: Amount = 0.0

    def with_step(self, step_s: float, samples: float) -> RankTime:
        """With one more step."""
        if self.heard < SETTLING:
            return replace(self, heard=self.heard + 1)
        return RankTime(self.heard + 1, self.counted + 1, self.seconds + step_s, self.samples + samples)


@dataclass(frozen=True, slots=True)
class RunTime:
    """One run's time, of the newest attempt.

    Attributes:
        shape: What its speed depends on (`core.estimate.shape.run_shape`).
        source: Of the prediction: "probe" or "runs"; empty: nothing was predicted.
        predicted_step_s, predicted_samples_per_s, predicted_speedup: Before it started.
        one_samples_per_s: One device's by itself, to which speed-ups refer.
        ranks: Steps of each rank.
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
        """With a step that a rank reported."""
        step_s, rate = line.get("step_time_s"), line.get("samples_per_s")
        if not isinstance(step_s, int | float) or not isinstance(rate, int | float) or not 0 < step_s < _LARGEST:
            return self
        samples = min(_LARGEST, max(0.0, step_s * rate))
        return replace(self, ranks={**self.ranks, rank: self.ranks.get(rank, RankTime()).with_step(step_s, samples)})

    def write(self, folder: Path) -> None:
        """Keeps it in a run's folder; a disk that refuses costs the record, not the run."""
        document = {"format": _FORMAT, "version": 1, **dataclasses.asdict(self)}
        try:
            write_atomic(folder / TIME, json.dumps(document, indent=1) + "\n", durable=False)
        except (OSError, RankdeckError):
            return


def known_error(times: Iterable[RunTime]) -> float | None:
    """How far off predictions from timed steps were, up or down, on average; None where too few runs can tell."""
    errors = [abs(time.error) for time in times if time.source == "probe" and time.error is not None]
    return sum(errors) / len(errors) if len(errors) >= TELLING else None


def read_time(folder: Path) -> RunTime | None:
    """What a run's folder keeps; None where there is nothing, or it cannot be read."""
    try:
        return read_record(RunTime, read_json(folder / TIME, limit_bytes=_LIMIT_BYTES))
    except (RecordError, RankdeckError, OSError):
        return None
