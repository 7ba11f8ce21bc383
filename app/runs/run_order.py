"""Order of the list of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from app.runs.run_row import NO_CURVE, RunRow, is_live, lasted_s
from core.metrics.curve import MetricCurve
from core.recipes.main_metric import MainMetric

NEWEST: Final = "newest"
BEST: Final = "best"
# Orders by name, each with its title.
ORDERS: Final = {NEWEST: "Newest first", "name": "Name", BEST: "Best first", "duration": "Longest first"}
# By more metrics than this, the title of `BEST` names none.
METRICS_NAMED: Final = 3


def ordered(
    rows: Iterable[RunRow], order: str = NEWEST, curves: Mapping[Path, MetricCurve] | None = None
) -> list[RunRow]:
    """Runs in an order, pinned ones on top; among equals the newest first.

    Args:
        rows: To sort.
        order: One of `ORDERS`; "newest" has live runs above all that have ended, "best" sorts by the last value of
            each run's main metric and keeps runs of one metric together.
        curves: Of main metrics, as far as they were read; only "best" looks at them.
    """
    known = curves or {}
    key = (lambda row: _by_metric(row, known)) if order == BEST else _KEYS.get(order, _by_date)
    return sorted(rows, key=lambda row: (not row.record.notes.pinned, *key(row), *_by_date(row)))


def best_title(metrics: Iterable[MainMetric]) -> str:
    names = sorted({f"{'highest' if metric.is_higher_better else 'lowest'} {metric.title}" for metric in metrics})
    by = ", ".join(names) if len(names) <= METRICS_NAMED else "each recipe's main metric"
    return f"{ORDERS[BEST]}: {by}" if names else ORDERS[BEST]


def _by_date(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    return (not is_live(row.entry), -state.created if state is not None else 0.0, row.path.name)


def _by_name(row: RunRow) -> tuple[Any, ...]:
    return (row.record.label.casefold(),)


def _by_metric(row: RunRow, curves: Mapping[Path, MetricCurve]) -> tuple[Any, ...]:
    value = row.last(curves.get(row.path, NO_CURVE))
    if value is None or not math.isfinite(value):
        return (True,)
    return (False, row.metric.title, -value if row.metric.is_higher_better else value)


def _by_duration(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    lasted = lasted_s(state) if state is not None else None
    return (lasted is None, -(lasted or 0.0))


_KEYS: Final[dict[str, Callable[[RunRow], tuple[Any, ...]]]] = {
    "name": _by_name,
    "duration": _by_duration,
}
