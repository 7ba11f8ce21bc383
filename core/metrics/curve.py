"""Curve of one metric at a few points, read from a run's files without reading them whole."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.metrics.column_group import EVAL_GROUP, is_eval_group
from core.metrics.column_index import ColumnsIndex, GroupIndex, read_index, read_rows
from core.metrics.columns import make
from core.metrics.last_value import NEWEST_ROWS, last_value

POINTS: Final = 32
# Neighbours that one point is the mean of: 16 KiB are read of a column, whatever its length.
ROWS_PER_POINT: Final = 64
# Of a `metrics.jsonl` without columns that is read for its curve: half a second's work.
MOST_LINES_BYTES: Final = 32 << 20
MAX_EVAL_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """One metric of a run, for a small picture: means at places, the last value, and the range of the evaluations."""

    points: tuple[float, ...] = ()
    last: float | None = None
    best_low: float | None = None
    best_high: float | None = None


def read_curve(columns: Path, metrics: Path, names: Sequence[str], eval_names: Sequence[str] = ()) -> MetricCurve:
    """Read the curve of the first of `names` that a run has; damaged and missing files count as empty.

    Runs of early versions have no columns: they are made of short `metrics`.
    """
    index = read_index(columns)
    if index is None and metrics.is_file() and metrics.stat().st_size <= MOST_LINES_BYTES:
        with contextlib.suppress(OSError, RankdeckError), tempfile.TemporaryDirectory() as made:
            return _read(Path(made), make(metrics, Path(made)), names, eval_names)
    return _read(columns, index, names, eval_names)


def _read(columns: Path, index: ColumnsIndex | None, names: Sequence[str], eval_names: Sequence[str]) -> MetricCurve:
    if index is None:
        return MetricCurve()
    points, last = _from_columns(columns, index, names)
    evals = _evals(columns, index, eval_names)
    return MetricCurve(tuple(points), last, min(evals, default=None), max(evals, default=None))


def _from_columns(columns: Path, index: ColumnsIndex, names: Sequence[str]) -> tuple[list[float], float | None]:
    for name in names:
        groups = [g for g in index.groups.values() if name in g.names and not g.name.startswith("device/")]
        stepping = [group for group in groups if not is_eval_group(group.name)] or groups
        if stepping:
            first = min(stepping, key=lambda group: (group.name != EVAL_GROUP, group.name))
            points = _sampled(first.path(columns, name), first.rows)
            return points, last_value(name, [newest_value(columns, group, name) for group in stepping])
    return [], None


def newest_value(columns: Path, group: GroupIndex, name: str) -> float | None:
    first = max(0, group.rows - NEWEST_ROWS)
    known = _finite(_rows(group.path(columns, name), first, group.rows - first))
    return known[-1] if known else None


def _sampled(path: Path, rows: int) -> list[float]:
    count = min(POINTS, rows)
    points: list[float] = []
    values: list[float] = []
    for number in range(count):
        start, end = rows * number // count, rows * (number + 1) // count
        # The first from the beginning, others to the end.
        start = max(start, end - ROWS_PER_POINT) if number else start
        values = _finite(_rows(path, start, min(ROWS_PER_POINT, end - start))) or values
        if values:
            points.append(sum(values) / len(values))
    return points


def _evals(columns: Path, index: ColumnsIndex, names: Sequence[str]) -> list[float]:
    group = index.groups.get("eval")
    if group is None:
        return []
    name = next((name for name in names if name in group.names), None)
    if name is None:
        return []
    first = max(0, group.rows - MAX_EVAL_ROWS)
    return _finite(_rows(group.path(columns, name), first, group.rows - first))


def _rows(path: Path, first: int, count: int) -> Sequence[float]:
    try:
        return read_rows(path, first, count)
    except (OSError, ValueError, OverflowError):  # ValueError: a file that ends within a number
        return ()


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]
