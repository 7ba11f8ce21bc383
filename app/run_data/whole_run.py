"""One reading of a run's series, for what compares runs and does not follow them."""

from __future__ import annotations

from collections.abc import Collection

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from core.errors import RankdeckError
from core.metrics.column_index import read_index
from core.metrics.metrics_file import MetricsTail
from core.run_folder.store import RunStore

SLICE_BYTES = 4 << 20


def read_series(store: RunStore, plotted: Collection[str] = ()) -> RunSeries:
    """A run's series as far as they are written; empty ones where they cannot be read.

    Args:
        store: The run.
        plotted: Columns that are made ready to be drawn.
    """
    run, start = RunSeries(), 0
    try:
        index = read_index(store.columns)
        if index is not None and index.belongs_to(store.metrics, store.columns):
            run, start = RunSeries.of_columns(store.columns, index, plotted), index.source_bytes
        tail = MetricsTail(store.metrics, start)
        while lines := tail.read(SLICE_BYTES):
            run.apply(parse_lines(lines))
    except (OSError, RankdeckError):
        return RunSeries()
    return run
