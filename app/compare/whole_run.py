"""Reading of runs that are compared: opened once, then only what was added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from app.run_data.long_bins import PLOTTED_NAMES
from app.run_data.metrics_batch import MetricsBatch, parse_lines, read_events
from app.run_data.run_series import RunSeries
from core.errors import RankdeckError
from core.metrics.column_index import EVENTS_NAME, read_index
from core.metrics.metrics_file import MetricsTail
from core.run_folder.store import RunStore

SLICE_BYTES: Final = 4 << 20


@dataclass(slots=True)
class RunReader:
    """Reads one run. `open` and `read_new` may be called in another thread than the series are drawn in.

    Attributes:
        problem: Why it cannot be read, in a sentence; empty while it can.
    """

    store: RunStore
    problem: str = ""
    _tail: MetricsTail = field(init=False)

    def __post_init__(self) -> None:
        self._tail = MetricsTail(self.store.metrics)

    def open(self) -> RunSeries:
        """Return the run's series as far as they are written; empty ones where they cannot be read."""
        run, start = RunSeries(), 0
        try:
            index = read_index(self.store.columns)
            if index is not None and index.belongs_to(self.store.metrics, self.store.columns):
                run, start = RunSeries.of_columns(self.store.columns, index), index.source_bytes
                run.add_events_before(read_events(self.store.columns / EVENTS_NAME, index.events_bytes))
            self._tail = MetricsTail(self.store.metrics, start)
            while lines := self._tail.read(SLICE_BYTES):
                run.apply(parse_lines(lines))
        except (OSError, RankdeckError) as error:
            self.problem = error.cause if isinstance(error, RankdeckError) else f"{error}."
            return RunSeries()
        run.make_bins(PLOTTED_NAMES)
        return run

    def read_new(self) -> list[MetricsBatch]:
        """Return what was written since; nothing where that cannot be read."""
        found: list[MetricsBatch] = []
        try:
            if not self.store.dir.is_dir():
                self.problem = "it was deleted while it was shown."
            while lines := self._tail.read(SLICE_BYTES):
                found.append(parse_lines(lines))
        except (OSError, RankdeckError) as error:
            self.problem = error.cause if isinstance(error, RankdeckError) else f"{error}."
        return found
