"""Order of the list of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from app.runs.run_row import NO_CURVE, RunRow, is_live
from core.metrics.curve import MetricCurve

NEWEST: Final = "newest"
BY_NAME: Final = "name"
BEST: Final = "best"
# Orders by name, each with its title.
ORDERS: Final = {NEWEST: "Newest first", BY_NAME: "Name", BEST: "Best first"}


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

    def key(row: RunRow) -> tuple[Any, ...]:
        if order == BEST:
            return _by_metric(row, known)
        return (row.record.label.casefold(),) if order == BY_NAME else ()

    return sorted(rows, key=lambda row: (not row.record.notes.pinned, *key(row), *_by_date(row)))


def _by_date(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    return (not is_live(row.entry), -state.created if state is not None else 0.0, row.path.name)


def _by_metric(row: RunRow, curves: Mapping[Path, MetricCurve]) -> tuple[Any, ...]:
    value = row.last(curves.get(row.path, NO_CURVE))
    if value is None or not math.isfinite(value):
        return (True,)
    return (False, row.metric.title, -value if row.metric.is_higher_better else value)
