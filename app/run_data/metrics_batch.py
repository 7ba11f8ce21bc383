"""Lines of `metrics.jsonl` turned into columns of numbers and a list of events, away from the GUI thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import orjson

from app.run_data.pyramid import Floats

Event = dict[str, Any]
EVAL_GROUP: Final = "eval"
_NOT_NUMBERS: Final = frozenset(("event", "rank", "attempt"))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for one series group, in the order of the file."""

    group: str
    count: int
    values: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Rewound:
    """A resumed attempt begins: what each rank did after this step is trained again."""

    steps: dict[str, int]


@dataclass(slots=True)
class MetricsBatch:
    """What a stretch of the file says, in its order.

    Attributes:
        parts: Rows and rewinds, to be applied one after the other.
        events: Every line that is neither `step` nor `device`.
        lines: Lines read.
        damaged: Lines that are not JSON objects with an event.
    """

    parts: list[Rows | Rewound] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lines: int = 0
    damaged: int = 0


def rank_group(rank: int | str) -> str:
    """The series group of a rank's steps."""
    return f"rank{rank}"


def device_group(line: Event) -> str:
    """The series group of a device sample: by UUID, or the host's own."""
    return f"device/{line.get('uuid') or 'host'}"


def parse_lines(lines: Sequence[bytes]) -> MetricsBatch:
    """Parses complete lines. A damaged one is counted and skipped: it must not hide the thousands around it."""
    batch = MetricsBatch(lines=len(lines))
    pending: dict[str, list[Event]] = {}
    for text in lines:
        try:
            line = orjson.loads(text)
        except orjson.JSONDecodeError:
            batch.damaged += 1
            continue
        kind = line.get("event") if isinstance(line, dict) else None
        if not isinstance(kind, str):
            batch.damaged += 1
            continue
        if kind == "step":
            pending.setdefault(rank_group(line.get("rank", 0)), []).append(line)
        elif kind == "device":
            pending.setdefault(device_group(line), []).append(line)
        else:
            batch.events.append(line)
            if kind == "eval":
                pending.setdefault(EVAL_GROUP, []).append(line)
            elif kind in ("launch", "resumed") and isinstance(line.get("resumed_from"), dict):
                _flush(pending, batch)
                steps = line["resumed_from"].items()
                batch.parts.append(Rewound({str(rank): step for rank, step in steps if isinstance(step, int)}))
    _flush(pending, batch)
    return batch


def _flush(pending: dict[str, list[Event]], batch: MetricsBatch) -> None:
    for group, lines in pending.items():
        names = dict.fromkeys(name for line in lines for name in line)
        values = {name: _column(lines, name) for name in names if name not in _NOT_NUMBERS}
        numbers = {name: column for name, column in values.items() if column is not None}
        batch.parts.append(Rows(group, len(lines), numbers))
    pending.clear()


def _column(lines: Sequence[Event], name: str) -> Floats | None:
    """The numbers under a name, NaN for every other kind of value; None if there is not one number."""
    values = [line.get(name) for line in lines]
    try:
        column: Floats = np.array(values, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        column = np.array([_number(value) for value in values])
    if column.ndim != 1 or any(isinstance(value, bool | str) for value in values):
        column = np.array([_number(value) for value in values])
    return None if bool(np.isnan(column).all()) and not _reported(lines, name) else column


def _reported(lines: Sequence[Event], name: str) -> bool:
    """Whether a column without one number is of numbers none the less: null stands for NaN and infinities."""
    return all(line.get(name) is None or _is_number(line[name]) for line in lines)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
