"""Figures of a run: means, evaluations and times, from a few rows of its columns; missing ones are made for it."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeGuard

import orjson

from core.errors import RankdeckError
from core.held_files import open_binary
from core.metrics.column_group import is_eval_group
from core.metrics.column_index import (
    EVENTS_NAME,
    ColumnsIndex,
    GroupIndex,
    read_index,
    read_rows,
)
from core.metrics.columns import make
from core.metrics.curve import newest_value
from core.metrics.metrics_file import LONGEST_LINE_BYTES
from core.run_folder.store import RunStore

# Columns of which the mean is wanted.
AVERAGED: Final = ("tokens_per_s", "samples_per_s", "power_w")
PIECES: Final = 64
# A mean of more than 64 × 2048 rows is that of as many pieces, evenly spread.
PIECE_ROWS: Final = 2048
MAX_EVALS: Final = 1 << 20


@dataclass(slots=True)
class GroupFigures:
    """One rank's or one device's.

    Attributes:
        last: The newest value by name.
        means: Of the columns in `AVERAGED`.
    """

    last: dict[str, float] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Figures:
    """One run's.

    Attributes:
        groups: By name: "rank0", "device/GPU-…".
        evals: Step and value of each evaluation, by name, as far as it still counts.
        trained_s: How long it was going, without the time between its attempts.
        disk_bytes: What its folder takes; None for a folder that is not there.
        newest_evals: The newest of each rank, by name and group.
    """

    groups: dict[str, GroupFigures] = field(default_factory=dict)
    evals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    trained_s: float | None = None
    disk_bytes: int | None = None
    newest_evals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)


def read_figures(store: RunStore) -> Figures:
    """A run's figures. What cannot be read is missing: a damaged file must not hide the other runs."""
    figures = _read(store)
    figures.disk_bytes = disk_bytes(store.dir)
    return figures


def disk_bytes(folder: Path) -> int | None:
    """The sum of the sizes of all files in a folder; None where it is not there. Links are not followed."""
    if not folder.is_dir():
        return None
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # a file that a live run removes just now
                total += (Path(place) / name).lstat().st_size
    return total


def _read(store: RunStore) -> Figures:
    try:
        index = read_index(store.columns)
        if index is not None and index.source_bytes and index.belongs_to(store.metrics, store.columns):
            return _of_columns(store.columns, index)
        with tempfile.TemporaryDirectory() as made:  # as of runs of early versions
            index = make(store.metrics, Path(made))
            return Figures() if index is None else _of_columns(Path(made), index)
    except (OSError, RankdeckError):
        return Figures()


def trained_time(launches: list[float], times: list[float]) -> float | None:
    """Seconds between each launch and the last sign of life before the next one; None for a run without one.

    Args:
        launches: When attempts began, rising.
        times: The last sign of life of each attempt, at least.
    """
    if not launches:
        return None
    ends = [*launches[1:], math.inf]
    total = 0.0
    for begin, end in zip(launches, ends, strict=True):
        total += max((ts for ts in times if begin <= ts < end), default=begin) - begin
    return total


def _of_columns(folder: Path, index: ColumnsIndex) -> Figures:
    figures = Figures()
    for name, group in index.groups.items():
        if not is_eval_group(name) and group.rows:
            figures.groups[name] = GroupFigures(
                {column: value for column in group.names if (value := newest_value(folder, group, column)) is not None},
                {column: _mean(folder, group, column) for column in AVERAGED if column in group.names},
            )
    for name in filter(is_eval_group, index.groups):
        if "step" in index.groups[name].names:
            for metric, pairs in _evals(folder, index.groups[name]).items():
                figures.evals[metric] = sorted(figures.evals.get(metric, []) + pairs)
                if pairs:
                    figures.newest_evals.setdefault(metric, {})[name] = pairs[-1]
    launches: list[float] = []
    times: list[float] = []
    for line in _events(folder / EVENTS_NAME, index.events_bytes):
        _note_time(line, launches, times)
    for group in index.groups.values():
        if "ts" in group.names and group.rows:
            rows = [_rows_before(folder, group, launch) for launch in launches[1:]] + [group.rows]
            times += [_value(folder, group, "ts", row - 1) for row in rows if row]
    figures.trained_s = trained_time(launches, times)
    return figures


def _value(folder: Path, group: GroupIndex, name: str, row: int) -> float:
    return read_rows(group.path(folder, name), row, 1)[0]


def _mean(folder: Path, group: GroupIndex, name: str) -> float:
    path, rows = group.path(folder, name), group.rows
    if rows <= PIECES * PIECE_ROWS:
        return _mean_of(read_rows(path, 0, rows))
    values = array("d")
    for piece in range(PIECES):
        values += read_rows(path, (rows - PIECE_ROWS) * piece // (PIECES - 1), PIECE_ROWS)
    return _mean_of(values)


def _mean_of(values: array[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _evals(folder: Path, group: GroupIndex) -> dict[str, list[tuple[float, float]]]:
    first = max(0, group.rows - MAX_EVALS)
    steps = read_rows(group.path(folder, "step"), first, group.rows - first)
    found: dict[str, list[tuple[float, float]]] = {}
    for name in group.names:
        if name not in ("step", "ts"):
            values = read_rows(group.path(folder, name), first, group.rows - first)
            found[name] = [pair for pair in zip(steps, values, strict=True) if all(map(math.isfinite, pair))]
    return found


def _rows_before(folder: Path, group: GroupIndex, ts: float) -> int:
    low, high = 0, group.rows
    while low < high:
        middle = (low + high) // 2
        if _value(folder, group, "ts", middle) < ts:
            low = middle + 1
        else:
            high = middle
    return low


def _events(path: Path, size: int) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with open_binary(path) as file:
        while file.tell() < size:
            line = _parsed(file.readline(LONGEST_LINE_BYTES))
            if line is not None:
                yield line


def _note_time(line: Mapping[str, Any], launches: list[float], times: list[float]) -> None:
    """Takes a line's time as a launch, and as the newest sign of life of its attempt."""
    ts = line.get("ts")
    if not _is_number(ts):
        return
    if line.get("event") == "launch":
        launches.append(float(ts))
        times.append(float(ts))
    elif times:
        times[-1] = max(times[-1], float(ts))


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        line = orjson.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("event"), str) else None


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond 1e308
        return False
