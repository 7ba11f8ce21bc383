"""Figures of a run: newest values, mean speeds and evaluations, from its columns; missing columns are made for it."""

from __future__ import annotations

import math
import tempfile
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.metrics.column_group import is_eval_group
from core.metrics.column_index import ColumnsIndex, GroupIndex, read_index, read_rows
from core.metrics.columns import make
from core.metrics.curve import newest_value
from core.run_folder.removal import folder_bytes
from core.run_folder.store import RunStore

SPEEDS: Final = ("tokens_per_s", "samples_per_s")
PIECES: Final = 64
# A mean of more than 64 × 2048 rows is that of as many pieces, evenly spread.
PIECE_ROWS: Final = 2048
MAX_EVALS: Final = 1 << 20


@dataclass(slots=True)
class Figures:
    """One run's.

    Attributes:
        last: The newest value of each column, by group ("rank0", "device/GPU-…") and name.
        speeds: The mean of each of `SPEEDS` over the run's training steps, all ranks together.
        evals: Step and value of each evaluation, by name, as far as it still counts.
        disk_bytes: The size of its folder; None for a folder that is not there.
        newest_evals: The newest of each rank, by name and group.
    """

    last: dict[str, dict[str, float]] = field(default_factory=dict)
    speeds: dict[str, float] = field(default_factory=dict)
    evals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    disk_bytes: int | None = None
    newest_evals: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)


def read_figures(store: RunStore) -> Figures:
    figures = _read(store)
    figures.disk_bytes = folder_bytes(store.dir) if store.dir.is_dir() else None
    return figures


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


def _of_columns(folder: Path, index: ColumnsIndex) -> Figures:
    figures = Figures()
    ranks = [group for name, group in index.groups.items() if not is_eval_group(name) and group.rows]
    for group in ranks:
        values = ((name, newest_value(folder, group, name)) for name in group.names)
        figures.last[group.name] = {name: value for name, value in values if value is not None}
    for name in SPEEDS:
        if (speed := mean_speed(folder, ranks, name)) is not None:
            figures.speeds[name] = speed
    for name in filter(is_eval_group, index.groups):
        if "step" in index.groups[name].names:
            for metric, pairs in _evals(folder, index.groups[name]).items():
                figures.evals[metric] = sorted(figures.evals.get(metric, []) + pairs)
                if pairs:
                    figures.newest_evals.setdefault(metric, {})[name] = pairs[-1]
    return figures


def mean_speed(folder: Path, groups: Iterable[GroupIndex], name: str) -> float | None:
    """The mean of a rate over a run: the work of all ranks, by the time of the rank that trained longest.

    Each step counts by its time, else one long step would weigh as little as a short one. So a run that lost ranks has
    the mean of both its speeds. Steps without a time, as of scripts, count alike, and ranks add up.
    """
    done: list[float] = []
    times: list[float] = []
    for group in groups:
        if name not in group.names:
            continue
        rates = _sampled(folder, group, name)
        seconds = (
            _sampled(folder, group, "step_time_s") if "step_time_s" in group.names else array("d", [1]) * len(rates)
        )
        pairs = [pair for pair in zip(rates, seconds, strict=True) if all(map(math.isfinite, pair)) and pair[1] > 0]
        if pairs:
            part = group.rows / len(rates)
            done.append(part * math.fsum(rate * time_s for rate, time_s in pairs))
            times.append(part * math.fsum(time_s for _, time_s in pairs))
    return sum(done) / max(times) if times else None


def _sampled(folder: Path, group: GroupIndex, name: str) -> array[float]:
    """Read a column's rows, or evenly spread pieces of a long one: the same rows of each column of a group."""
    path, rows = group.path(folder, name), group.rows
    if rows <= PIECES * PIECE_ROWS:
        return read_rows(path, 0, rows)
    values = array("d")
    for piece in range(PIECES):
        values += read_rows(path, (rows - PIECE_ROWS) * piece // (PIECES - 1), PIECE_ROWS)
    return values


def _evals(folder: Path, group: GroupIndex) -> dict[str, list[tuple[float, float]]]:
    first = max(0, group.rows - MAX_EVALS)
    steps = read_rows(group.path(folder, "step"), first, group.rows - first)
    found: dict[str, list[tuple[float, float]]] = {}
    for name in group.names:
        if name not in ("step", "ts"):
            values = read_rows(group.path(folder, name), first, group.rows - first)
            found[name] = [pair for pair in zip(steps, values, strict=True) if all(map(math.isfinite, pair))]
    return found
