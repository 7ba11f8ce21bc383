"""Curve of one metric at a few points, read from a run's files without reading them whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.held_files import open_binary
from core.metrics.column_group import EVAL_GROUP, is_eval_group
from core.metrics.column_index import ColumnsIndex, GroupIndex, read_index, read_rows
from core.metrics.last_value import NEWEST_ROWS, last_value
from core.parsing import ParseError, parse_json

POINTS: Final = 32
# Neighbours that one point is the mean of: 16 KiB are read of a column, whatever its length.
ROWS_PER_POINT: Final = 64
# What is read of `metrics.jsonl` for one point: about 17 lines.
WINDOW_BYTES: Final = 4096
MAX_EVAL_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """One metric of a run, for a small picture.

    Attributes:
        points: Means at places from the first step to the last, all finite; empty where nothing was reported.
        last: The last value, see `core.metrics.last_value`.
        best_low, best_high: The lowest and the highest value of the evaluations.
    """

    points: tuple[float, ...] = ()
    last: float | None = None
    best_low: float | None = None
    best_high: float | None = None


def read_curve(columns: Path, metrics: Path, names: Sequence[str], eval_names: Sequence[str] = ()) -> MetricCurve:
    """Reads the curve of the first of `names` that a run has; damaged and missing files count as empty.

    Args:
        columns: The folder of its columns. Runs of early versions have none, then `metrics` is sampled.
        metrics: Its `metrics.jsonl`.
        names: Of the metric, the preferred one first.
        eval_names: The same for its evaluations.
    """
    index = read_index(columns)
    points: list[float] = []
    last = None
    if index is not None:
        points, last = _from_columns(columns, index, names)
    if not points:
        points, last = _from_lines(metrics, names)
    evals = [] if index is None else _evals(columns, index, eval_names)
    return MetricCurve(tuple(points), last, min(evals, default=None), max(evals, default=None))


def _from_columns(columns: Path, index: ColumnsIndex, names: Sequence[str]) -> tuple[list[float], float | None]:
    """Means at places of the first rank's column, and the last value of all."""
    for name in names:
        groups = [g for g in index.groups.values() if name in g.names and not g.name.startswith("device/")]
        stepping = [group for group in groups if not is_eval_group(group.name)] or groups
        if stepping:
            first = min(stepping, key=lambda group: (group.name != EVAL_GROUP, group.name))
            points = _sampled(first.path(columns, name), first.rows)
            return points, last_value(name, [newest_value(columns, group, name) for group in stepping])
    return [], None


def newest_value(columns: Path, group: GroupIndex, name: str) -> float | None:
    """A column's newest finite value; None if there is none among its last rows."""
    first = max(0, group.rows - NEWEST_ROWS)
    known = _finite(_rows(group.path(columns, name), first, group.rows - first))
    return known[-1] if known else None


def _sampled(path: Path, rows: int) -> list[float]:
    count = min(POINTS, rows)
    points: list[float] = []
    values: list[float] = []
    for number in range(count):
        start, end = rows * number // count, rows * (number + 1) // count
        start = max(start, end - ROWS_PER_POINT) if number else start  # the first from the beginning, others to the end
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


def _from_lines(metrics: Path, names: Sequence[str]) -> tuple[list[float], float | None]:
    """Values of one rank at places of `metrics.jsonl`, and the last value of all."""
    found: dict[str, list[list[float]]] = {}
    newest: dict[str, dict[object, float]] = {}
    for lines in _windows(metrics):
        window: dict[str, list[float]] = {}
        for line in lines:
            for rank, name, value in _values(line, names):
                newest.setdefault(name, {})[rank] = value
                if rank == 0:
                    window.setdefault(name, []).append(value)
        for name, values in window.items():
            found.setdefault(name, []).append(values)
    chosen = next((name for name in names if name in found), "")
    parts, last = found.get(chosen, []), last_value(chosen, newest.get(chosen, {}).values())
    if len(parts) < POINTS // 2:  # a short file: its windows are all of it
        flat = [value for part in parts for value in part]
        count = min(POINTS, len(flat))
        parts = [flat[len(flat) * n // count : len(flat) * (n + 1) // count] for n in range(count)]
    return [sum(part) / len(part) for part in parts], last


def _windows(metrics: Path) -> Iterator[list[bytes]]:
    """Whole lines at places of the file, from its beginning to its end."""
    try:
        with open_binary(metrics) as file:
            size = file.seek(0, 2)
            count = max(1, min(POINTS, size // WINDOW_BYTES))
            for number in range(count):
                start = (size - WINDOW_BYTES) * number // max(1, count - 1) if count > 1 else 0
                file.seek(max(0, start))
                lines = file.read(WINDOW_BYTES if count > 1 else 2 * WINDOW_BYTES).split(b"\n")
                yield lines[1 if start else 0 :]
    except OSError:
        return


def _values(line: bytes, names: Sequence[str]) -> Iterator[tuple[object, str, float]]:
    """The metric's values in a step line, each with its rank and name."""
    try:
        values = parse_json(line)
    except ParseError:  # cut off, binary, or nested a thousand times
        return
    if not isinstance(values, dict) or values.get("event") != "step":
        return
    for name in names:
        yield from ((values.get("rank"), name, value) for value in _finite([values.get(name)]))


def _finite(values: Iterable[object]) -> list[float]:
    found: list[float] = []
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                continue
            if math.isfinite(number):
                found.append(number)
    return found
