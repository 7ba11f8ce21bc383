"""Lines of `metrics.jsonl` turned into columns of numbers and a list of events, away from the GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from app.run_data.pyramid import Floats
from core.held_files import open_binary
from core.metrics.column_group import NOT_COLUMNS, column_values, group_for, resumed_steps

Event = dict[str, Any]


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
    """A part of the file, in its order.

    Attributes:
        parts: Rows and rewinds, to be applied one after the other.
        events: Every line that is neither `step` nor `device`.
        damaged: Lines that are not JSON objects with an event.
    """

    parts: list[Rows | Rewound] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lines: int = 0
    damaged: int = 0


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
        group = group_for(line)
        if group is not None:
            pending.setdefault(group, []).append(line)
        if kind not in ("step", "device"):
            batch.events.append(line)
            steps = resumed_steps(line)
            if steps:
                _flush(pending, batch)
                batch.parts.append(Rewound(steps))
    _flush(pending, batch)
    return batch


def read_events(path: Path, size: int) -> list[Event]:
    """Read the events in the first `size` bytes of a file; raises `OSError`."""
    with open_binary(path) as file:
        return parse_lines(file.read(size).split(b"\n")[:-1]).events


def _flush(pending: dict[str, list[Event]], batch: MetricsBatch) -> None:
    for group, lines in pending.items():
        names = dict.fromkeys(name for line in lines for name in line)
        values = {name: _column(lines, name) for name in names if name not in NOT_COLUMNS}
        numbers = {name: column for name, column in values.items() if column is not None}
        batch.parts.append(Rows(group, len(lines), numbers))
    pending.clear()


def _column(lines: Sequence[Event], name: str) -> Floats | None:
    values = column_values([line.get(name) for line in lines])
    return None if values is None else np.array(values)
