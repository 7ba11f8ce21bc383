"""Best checkpoint of a run, judged by the first figure that its recipe calls better higher or lower."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.metrics.column_group import EVAL_GROUP, rank_group
from core.metrics.column_index import GroupIndex, read_index, read_rows
from core.recipes.heroes import DEFAULT_HEROES, Hero

# Up to this many are kept that may be the best, however long the columns are not written: a full disk is worse.
MOST_UNDECIDED: Final = 8
# Steps before a checkpoint whose mean is its value: one step of a small batch, or one episode, jumps.
RECENT_ROWS: Final = 20


def worth_keeping(columns: Path, heroes: Sequence[Hero], entries: Sequence[CheckpointEntry]) -> set[int]:
    """Numbers of the checkpoints that must stay: the best one, and those that may be.

    The columns are written some time after their steps. A checkpoint that they do not reach may turn out to be the
    best, so the newest `MOST_UNDECIDED` of such stay.
    """
    best = best_checkpoint(columns, heroes, entries)
    undecided: list[int] = []
    if _hero(heroes).metric != "loss":
        reached = _steps_in(columns)
        undecided = [entry.number for entry in entries if entry.step > reached and not (entry.diverged or entry.aside)]
    return {*undecided[-MOST_UNDECIDED:], *([] if best is None else [best])}


def best_checkpoint(columns: Path, heroes: Sequence[Hero], entries: Sequence[CheckpointEntry]) -> int | None:
    """The number of the best checkpoint, of equal ones the newest; None where none has a value.

    Where the figure is evaluated (`val_loss` for `loss`), only checkpoints of an evaluated step have a value: the
    evaluation's. Else it is the mean of the steps before the checkpoint.
    """
    hero = _hero(heroes)
    values = {entry.number: _value(columns, hero.metric, entry) for entry in entries if not entry.diverged}
    known = {number: value for number, value in values.items() if value is not None and math.isfinite(value)}
    pick = max if hero.better == "higher" else min
    return pick(sorted(known, reverse=True), key=known.__getitem__, default=None)


def _hero(heroes: Sequence[Hero]) -> Hero:
    return next((hero for hero in heroes if hero.better), DEFAULT_HEROES[0])


def _steps_in(columns: Path) -> int:
    """The newest step that the columns hold; -1 before they hold any."""
    index = read_index(columns)
    steps = None if index is None else index.groups.get(rank_group(0))
    if steps is None or not steps.rows:
        return -1
    try:
        return int(_rows(columns, steps, "step", steps.rows - 1, steps.rows)[0])
    except (OSError, ValueError, IndexError):
        return -1


def _value(columns: Path, metric: str, entry: CheckpointEntry) -> float | None:
    if metric == "loss":
        return entry.val_loss
    index = None if entry.aside else read_index(columns)  # columns hold nothing of what was set aside
    if index is None:
        return None
    evals, steps = index.groups.get(EVAL_GROUP), index.groups.get(rank_group(0))
    try:
        for name in (f"val_{metric}", metric):
            if evals is not None and name in evals.names:
                rows = _rows_until(columns, evals, entry.step)
                at = _rows(columns, evals, "step", rows - 1, rows)
                return _mean(_rows(columns, evals, name, rows - 1, rows)) if entry.step in at else None
        if steps is not None and metric in steps.names:
            rows = _rows_until(columns, steps, entry.step)
            return _mean(_rows(columns, steps, metric, rows - RECENT_ROWS, rows))
    except (OSError, ValueError):  # ValueError: a file that ends within a number
        pass
    return None


def _rows_until(columns: Path, group: GroupIndex, step: int) -> int:
    """The number of a group's rows up to a step, found without reading the column whole."""
    at = float(step)
    return bisect.bisect_right(range(group.rows), at, key=lambda row: _rows(columns, group, "step", row, row + 1)[0])


def _rows(columns: Path, group: GroupIndex, name: str, first: int, end: int) -> Sequence[float]:
    first = max(0, first)
    return read_rows(group.path(columns, name), first, max(0, end - first))


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else None
