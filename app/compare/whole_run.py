"""Reading of runs that are compared: opened once, then only what was added; long columns when they are charted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from app.run_data.column import Column
from app.run_data.metrics_batch import Event, MetricsBatch, parse_lines
from app.run_data.pyramid import Pyramid
from app.run_data.run_series import RunSeries
from core.errors import RankdeckError
from core.held_files import open_binary
from core.metrics.column_index import EVENTS_NAME, read_index
from core.metrics.metrics_file import MetricsTail
from core.run_folder.store import RunStore

SLICE_BYTES: Final = 4 << 20
# Bins of shorter columns are made in less than a millisecond, so those need no thread.
QUICK_ROWS: Final = 1 << 16
PLACES: Final = ("step", "ts")
Bins = list[tuple[Column, Pyramid]]


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
                run.add_events_before(self._old_events(index.events_bytes))
            self._tail = MetricsTail(self.store.metrics, start)
            while lines := self._tail.read(SLICE_BYTES):
                run.apply(parse_lines(lines))
        except (OSError, RankdeckError) as error:
            self.problem = error.cause if isinstance(error, RankdeckError) else f"{error}."
            return RunSeries()
        take_bins(make_bins(run, PLACES, run.ranks()))
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

    def _old_events(self, size: int) -> list[Event]:
        with open_binary(self.store.columns / EVENTS_NAME) as file:
            return parse_lines(file.read(size).split(b"\n")[:-1]).events


def unread_columns(run: RunSeries, names: Collection[str], ranks: Iterable[int]) -> list[Column]:
    """Return columns of ranks and evaluations that are too long to be drawn before their bins are made."""
    groups = [*(run.rank(rank) for rank in ranks), *run.evaluations().values()]
    columns = [series.columns[name] for series in groups for name in names if name in series.columns]
    return [column for column in columns if not column.has_bins and column.rows >= QUICK_ROWS]


def make_bins(run: RunSeries, names: Collection[str], ranks: Iterable[int]) -> Bins:
    """Make the bins of `unread_columns` in any thread; `take_bins` must be called in the one that draws."""
    return [(column, column.file_bins()) for column in unread_columns(run, names, ranks)]


def take_bins(made: Bins) -> None:
    for column, bins in made:
        column.take_bins(bins)
