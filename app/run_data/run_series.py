"""Everything one run has reported, as plain values: series by rank and device, evaluations, events."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from app.run_data.column import BlockCache, same_rows
from app.run_data.curves import reduce_range
from app.run_data.marks import Mark, marks_of
from app.run_data.metrics_batch import Event, MetricsBatch, Rewound
from app.run_data.pyramid import Floats
from app.run_data.series import AXES, KEPT_ANSWERS, AxisName, Series, XAxis
from core.metrics.column_group import EVAL_GROUP, eval_group, rank_group
from core.metrics.column_index import ColumnsIndex

MAP_POINTS = 1024
# Columns that rise with the steps.
COUNTERS: dict[AxisName, str] = {"tokens": "tokens_seen", "epoch": "epoch"}


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes of a batch.

    Attributes:
        groups: Series that got rows ("rank0", "device/GPU-…", "eval").
        events: Events that are new, oldest first.
        rewound: Points were taken back, because a resumed attempt trains their steps again.
        caught_up: Everything that the file held when it was opened is shown now.
    """

    groups: frozenset[str] = frozenset()
    events: tuple[Event, ...] = ()
    rewound: bool = False
    caught_up: bool = False

    def __or__(self, other: ChangeSet) -> ChangeSet:
        rewound, caught_up = self.rewound or other.rewound, self.caught_up or other.caught_up
        return ChangeSet(self.groups | other.groups, self.events + other.events, rewound, caught_up)

    def __bool__(self) -> bool:
        return bool(self.groups or self.events or self.rewound or self.caught_up)


@dataclass(slots=True)
class RunSeries:
    """One run's numbers and events, in the order in which they were reported.

    Attributes:
        groups: Series by name: "rank0", …; "device/<uuid>" and "device/host"; "eval",
            "eval/rank1".
        events: Every line that is neither a step nor a device sample, of all attempts.
        launches: When each attempt was started.
        marks: Where it was resumed, and where it saved.
        number: Tells it from every other one of this process.
    """

    groups: dict[str, Series] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    launches: list[float] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    cache: BlockCache = field(default_factory=BlockCache)
    number: int = field(default_factory=itertools.count().__next__)
    _ranks: list[int] = field(default_factory=list)
    _ranks_of: int = 0
    _turned: dict[tuple[XAxis, float, float], tuple[float, float] | None] = field(default_factory=dict)
    _clock: Series | None = None
    _counter: tuple[tuple[AxisName, int], tuple[Floats, Floats] | None] | None = None
    _shared: dict[tuple[str, tuple[int, ...]], tuple[int, bool]] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, folder: Path, index: ColumnsIndex) -> RunSeries:
        run = cls()
        run.groups = {name: Series.of_files(folder, group, run.cache) for name, group in index.groups.items()}
        return run

    def make_bins(self, names: Collection[str]) -> None:
        """Makes the bins of these columns that have none; those of others are made when they are needed."""
        for series in self.groups.values():
            for column in [series.columns[name] for name in series.columns.keys() & set(names)]:
                if not column.has_bins:
                    column.take_bins(column.file_bins())

    def ranks(self) -> list[int]:
        # Each plot asks a few times a picture, and groups only come.
        if self._ranks_of != len(self.groups):
            self._ranks = sorted(int(n[4:]) for n in self.groups if n.startswith("rank") and n[4:].isdecimal())
            self._ranks_of = len(self.groups)
        return list(self._ranks)

    def rank(self, rank: int) -> Series:
        """A rank's steps; empty if it has reported none."""
        return self.groups.get(rank_group(rank)) or Series()

    def is_shared(self, name: str, ranks: Sequence[int]) -> bool:
        """True where all these ranks report the same values: the learning rate, or the gradient norm of DDP.

        Rows that not all of them have yet are not compared; of many, the whole bins.
        """
        series = [self.rank(rank) for rank in ranks]
        if len(series) < 2 or any(name not in one.columns for one in series):
            return False
        rows = min(one.rows for one in series)
        key, kept = (name, tuple(ranks)), self._shared.get((name, tuple(ranks)))
        if kept is None or kept[0] > rows:  # unknown, or the run went back
            kept = (0, True)
        if kept[1] and kept[0] < rows:
            head, *others = [one.columns[name] for one in series]
            kept = (rows, all(same_rows(head, other, kept[0], rows) for other in others))
        self._shared[key] = kept
        return kept[1] and rows > 0

    def devices(self) -> list[str]:
        """UUIDs of the devices that were sampled ("GPU-…", "cpu:0"); not the host."""
        names = (name.removeprefix("device/") for name in self.groups if name.startswith("device/"))
        return sorted(name for name in names if name != "host")

    def device(self, uuid: str) -> Series:
        """A device's samples, or with "host" those of the machine."""
        return self.groups.get(f"device/{uuid}") or Series()

    @property
    def evals(self) -> Series:
        """Evaluations of the run, or of rank 0 where ranks evaluate by themselves: `step`, `ts`, `val_loss`, …."""
        return self.groups.get(EVAL_GROUP) or Series()

    def evaluations(self) -> dict[int, Series]:
        found = {rank: self.groups.get(eval_group(rank)) for rank in self._evaluating_ranks()}
        return {rank: series for rank, series in found.items() if series is not None and series.rows}

    def best_evaluation(self, name: str, better: str = "lower") -> tuple[Series, int] | None:
        """Return the series and row of the lowest or highest finite value of all evaluations; None without one."""
        best: tuple[float, Series, int] | None = None
        sign = 1.0 if better == "lower" else -1.0
        for series in self.evaluations().values():
            if name in series.columns:
                values = sign * series.columns[name].read(0, series.rows)
                known = np.flatnonzero(np.isfinite(values))
                row = int(known[values[known].argmin()]) if len(known) else -1
                if len(known) and (best is None or values[row] < best[0]):
                    best = (float(values[row]), series, row)
        return None if best is None else best[1:]

    def _evaluating_ranks(self) -> list[int]:
        first = f"{EVAL_GROUP}/rank"
        return [0, *sorted(int(name.removeprefix(first)) for name in self.groups if name.startswith(first))]

    def events_of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("event") == kind]

    def apply(self, batch: MetricsBatch) -> ChangeSet:
        self._turned.clear()
        touched: set[str] = set()
        rewound = False
        for part in batch.parts:
            if isinstance(part, Rewound):
                self._rewind(part.steps)
                rewound = True
                continue
            self.groups.setdefault(part.group, Series()).append(part.count, part.values)
            touched.add(part.group)
        self._clock = None
        self.events.extend(batch.events)
        self._read_events(batch.events)
        return ChangeSet(frozenset(touched), tuple(batch.events), rewound)

    def add_events_before(self, events: Sequence[Event]) -> None:
        """Inserts the events of the time before the first batch: they are read after the first picture."""
        self.events[:0] = events
        self._read_events(events)

    def _read_events(self, new: Sequence[Event]) -> None:
        if any(event.get("event") in ("launch", "resumed", "commit") for event in new):
            self.launches = _launches(self.events)
            self.marks = marks_of(self.events)

    def adopt(self, folder: Path, index: ColumnsIndex) -> None:
        for name, group in index.groups.items():
            if name in self.groups:
                self.groups[name].adopt_files(folder, group, self.cache)

    def extent(self, axis: XAxis) -> tuple[float, float] | None:
        """Return the first and the last value that ranks and evaluations reported; None without any.

        Devices are sampled before that, while ranks import their packages.
        """
        names = [name for name in self.groups if not name.startswith("device/")]
        found = [bounds for name in names if (bounds := self.groups[name].bounds(axis)) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    def axes(self) -> list[AxisName]:
        return [name for name in AXES if name not in COUNTERS or self.counter(name) is not None]

    def counter(self, axis: AxisName) -> tuple[Floats, Floats] | None:
        """Return steps and the tokens or epochs by then, both rising; epochs rise evenly from one to the next.

        None where the run does not count them, or they stay the same, as in a run's first epoch.
        """
        clock, name = self.clock(), COUNTERS[axis]
        if name not in clock.columns or clock.rows < 2:
            return None
        key = (axis, clock.rows)
        if self._counter is None or self._counter[0] != key:
            self._counter = (key, self._count(clock, name, is_whole=axis == "epoch"))
        return self._counter[1]

    def _count(self, clock: Series, name: str, *, is_whole: bool) -> tuple[Floats, Floats] | None:
        bounds = clock.bounds("step")
        if bounds is None:
            return None
        table, _ = reduce_range(clock, name, "step", *bounds, MAP_POINTS)
        known = ~(np.isnan(table.x) | np.isnan(table.low))
        steps, counts = table.x[known], np.fmax.accumulate(table.low[known]) if known.any() else table.x[:0]
        if is_whole and bool((counts == np.floor(counts)).all()):
            begun = np.flatnonzero(np.diff(counts) > 0) + 1
            begun = np.concatenate(([0], begun)) if len(counts) else begun
            if len(begun) < 2:
                return None
            began, pace = steps[begun[-1]], np.diff(counts[begun])[-1] / np.diff(steps[begun])[-1]
            last = counts[-1] + min(0.999, (bounds[1] - began) * pace)  # of an epoch of the length of the one before
            steps, counts = np.append(steps[begun], bounds[1]), np.append(counts[begun], last)
        rises = len(counts) > 1 and counts[-1] > counts[0]
        return (steps, counts) if rises else None

    def clock(self) -> Series:
        """The longest rank's series, by which steps and times are turned into each other."""
        # Each chart asks a few times a picture, and there may be thousands of ranks.
        if self._clock is None:
            ranks = (self.rank(rank) for rank in self.ranks())
            self._clock = max(ranks, key=lambda series: series.rows, default=Series())
        return self._clock

    def pauses(self, series: Series, low: float, high: float) -> list[tuple[float, float]]:
        """Return the pauses between two times: the last time before each launch, the first behind it."""
        found: list[tuple[float, float]] = []
        ticks = series.columns.get("ts")
        for launch in self.launches:
            row = series.row_at("ts", launch) if ticks is not None and low < launch < high else 0
            if ticks is not None and 0 < row < series.rows:
                before, behind = ticks.read(row - 1, row + 1).tolist()
                found.append((before, behind))
        return found

    def times_of(self, low: float, high: float) -> tuple[float, float] | None:
        """Times at which two steps were reported; None while there is no step."""
        return self._mapped("step", low, high)

    def steps_of(self, low: float, high: float) -> tuple[float, float] | None:
        """Steps that were reported at two times; None while there is no step."""
        return self._mapped("ts", low, high)

    def step_positions(self, times: Floats) -> Floats:
        """Steps (with a fraction) under way at these times; NaN before the first and after the last."""
        return self._positions("ts", "step", times)

    def time_positions(self, steps: Floats) -> Floats:
        """Times at which these steps were reported; NaN before the first and after the last."""
        return self._positions("step", "ts", steps)

    def _positions(self, axis: XAxis, name: XAxis, values: Floats) -> Floats:
        """Map rising values of one axis to the other, between the bins that a plot of this part would draw."""
        clock = self.clock()
        bounds = clock.bounds(axis)
        nothing: Floats = np.full(len(values), np.nan)
        if not len(values) or bounds is None:
            return nothing
        table, _ = reduce_range(clock, name, axis, float(values[0]), float(values[-1]), MAP_POINTS)
        middle = (table.low + table.high) / 2
        known = ~(np.isnan(table.x) | np.isnan(middle))
        if not known.any():
            return nothing
        placed = np.interp(values, table.x[known], middle[known])
        return np.where((values >= bounds[0]) & (values <= bounds[1]), placed, np.nan)

    def _mapped(self, axis: XAxis, low: float, high: float) -> tuple[float, float] | None:
        """Map a part of one axis to the other; kept, because each device asks for it a few times a picture."""
        key = (axis, low, high)
        if key not in self._turned:
            if len(self._turned) >= KEPT_ANSWERS:
                self._turned.clear()
            self._turned[key] = self._turn(axis, low, high)
        return self._turned[key]

    def _turn(self, axis: XAxis, low: float, high: float) -> tuple[float, float] | None:
        clock = self.clock()
        column = clock.columns.get("ts" if axis == "step" else "step")
        if column is None or not clock.rows:
            return None
        first = max(0, clock.row_at(axis, low, "right") - 1)
        last = min(clock.rows - 1, clock.row_at(axis, high, "left"))
        values = [float(column.read(row, row + 1)[0]) for row in (first, max(first, last))]
        return None if any(value != value for value in values) else (values[0], values[1])

    def _rewind(self, steps: dict[str, int]) -> None:
        self._shared.clear()
        self._counter = None
        for rank, step in steps.items():
            if rank_group(rank) in self.groups:
                self.groups[rank_group(rank)].truncate_after(step)
        if steps:
            for series in self.evaluations().values():
                series.truncate_after(max(steps.values()))


def _launches(events: Iterable[Event]) -> list[float]:
    times = [event.get("ts") for event in events if event.get("event") in ("launch", "resumed")]
    return [float(ts) for ts in times if isinstance(ts, int | float)]
