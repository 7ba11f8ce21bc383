"""Curves of several runs in one chart: a colour a run; the mean over its ranks, or a dash pattern a rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import EMPTY, Curve
from app.run_data.pyramid import Floats
from app.run_data.run_series import COUNTERS, RunSeries
from app.run_data.series import AxisName, Series
from app.run_data.whole_run import unread_columns
from app.views.plots.curve_options import CurveOptions
from app.views.plots.drawing import Layer, Line, Points, Strokes
from app.views.plots.eval_curves import evaluation_curve
from app.views.plots.rank_curves import (
    SMOOTHED,
    mean_curve,
    mean_of_values,
    rows_in,
    smoothed_value,
    value_of,
    without_pauses,
)
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View
from app.views.style.palette import faint, rank_colour
from core.formatting import UNKNOWN, number, rate, short_duration
from core.machine.devices.names import RankNames
from core.metrics.column_group import EVAL_GROUP

MAX_LABEL: Final = 24
RUN_KEY: Final = "run "
RAW_SHARE: Final = 0.32
# Of the lines of a run's devices, while each has one; they repeat after eight, as colours do.
DASHES: Final[tuple[tuple[float, ...], ...]] = (
    (), (6.0, 3.0), (2.0, 3.0), (8.0, 3.0, 2.0, 3.0),
    (12.0, 4.0), (8.0, 3.0, 2.0, 3.0, 2.0, 3.0), (4.0, 6.0), (2.0, 6.0),
)  # fmt: skip
GIB: Final = 2.0**30


@dataclass(slots=True)
class OverlaidRun:
    """One run.

    Attributes:
        label: Its name.
        series: What it has reported.
        names: What its ranks are called.
    """

    label: str
    series: RunSeries
    names: RankNames = field(default_factory=RankNames)

    @property
    def ranks(self) -> list[int]:
        """The ranks that are drawn: of very many, some."""
        return CurveOptions().offered(self.series)

    def is_ready(self, column: str) -> bool:
        """Whether a column can be drawn at once; that of another run always can."""
        return not unread_columns(self.series, (column,), self.ranks)

    @property
    def short(self) -> str:
        """Its name with the middle left out where it is long."""
        if len(self.label) <= MAX_LABEL:
            return self.label
        half = (MAX_LABEL - 1) // 2
        return f"{self.label[:half]}…{self.label[-half:]}"

    @property
    def start(self) -> float:
        """When it began to train, in Unix seconds: its first step or evaluation."""
        return min((low for low, _ in self._times()), default=0.0)

    def extent(self, axis: AxisName) -> tuple[float, float] | None:
        """From its first to its last step, token or epoch; or in seconds from its start. None without any."""
        if axis in COUNTERS:
            counter = self.series.counter(axis)
            return None if counter is None else (float(counter[1][0]), float(counter[1][-1]))
        if axis == "clock":
            return self.series.extent("ts")
        if axis == "time":
            start = self.start
            return max(((0.0, high - start) for _, high in self._times()), default=None)
        groups = [*(self.series.rank(rank) for rank in self.ranks), *self.series.evaluations().values()]
        found = [bounds for group in groups if (bounds := group.bounds("step")) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    def _times(self) -> list[tuple[float, float]]:
        groups = (self.series.clock(), *self.series.evaluations().values())
        return [bounds for group in groups if (bounds := group.bounds("ts")) is not None]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """How values of a column are shown.

    Attributes:
        text: As people read one.
        unit: As `PlotSource.unit`.
        floor: As `PlotSource.floor`.
        is_sum: Of a run, its ranks' values are added up.
        is_smooth: It has no noise, and its jumps are what there is to see: no line is drawn over it.
        scale: What values are divided by.
    """

    text: Callable[[float | None], str] = number
    unit: str = ""
    floor: float | None = None
    is_sum: bool = False
    is_smooth: bool = False
    scale: float = 1.0


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else short_duration(value)


_DURATION: Final = _Quantity(_seconds, "s", 0.0)
_QUANTITIES: Final = {
    "tokens_per_s": _Quantity(lambda value: rate(value, "tok/s"), floor=0.0, is_sum=True),
    "samples_per_s": _Quantity(lambda value: rate(value, "samples/s"), floor=0.0, is_sum=True),
    **dict.fromkeys(("step_time_s", "data_wait_s", "sync_wait_s"), _DURATION),
    **dict.fromkeys(("lr", "loss_scale"), _Quantity(is_smooth=True)),
    "device_mem_bytes": _Quantity(lambda value: f"{number(value)} GiB", floor=0.0, scale=GIB),
}


class RunOverlay:
    """One column of several runs: steps as a faint curve and a smoothed line, evaluations as points.

    On the time axis each run is drawn from its own start.

    Args:
        runs: In the order of their colours.
        name: The column.
        options: Shared by the charts: smoothing, mean or each rank, and which runs are hidden.
        is_eval: The column is one of evaluations.
    """

    fed_by = ("rank", EVAL_GROUP)
    fixed_scale: Scale | None = None

    def __init__(self, runs: Sequence[OverlaidRun], name: str, options: CurveOptions, *, is_eval: bool = False) -> None:
        self._runs = runs
        self.name = name
        self._options = options
        self._is_eval = is_eval
        self._quantity = _QUANTITIES.get(name, _Quantity())
        self.unit = self._quantity.unit
        self.floor = self._quantity.floor

    def rows(self, view: View) -> int:
        return max((rows_in(run.series.clock(), _own_view(run, view)) for run in self._runs), default=0)

    @property
    def is_ready(self) -> bool:
        """Whether it can be drawn at once; until then it draws nothing."""
        return all(run.is_ready(self.name) for run in self._runs)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """All that was reported first, then every line, so that no line is hidden by another run's noise."""
        behind: list[Layer] = []
        front: list[Layer] = []
        for place, run in self._shown():
            own, colour = _own_view(run, view), rank_colour(place, palette)
            if not run.is_ready(self.name):
                continue
            if self._is_eval:
                found = self._points(run, own, bins, colour)
            else:
                found = self._curves(run, own, bins, colour, palette)
            shifted = [replace(layer, x=_shared_places(run, view, own, layer.x)) for layer in found]
            for layer in shifted:
                (behind if isinstance(layer, Strokes) and not self._is_eval else front).append(layer)
        return [*behind, *front]

    def _points(self, run: OverlaidRun, view: View, bins: int, colour: QColor) -> list[Layer]:
        """The evaluations; where ranks evaluate by themselves, their mean or each rank's."""
        known = self._groups(run)
        parts = {"": tuple(known.values())}
        if len(known) > 1 and not self._options.mean:
            parts = {run.names.short(rank): (series,) for rank, series in known.items()}
        layers: list[Layer] = []
        for rank_name, series in parts.items():
            curve = evaluation_curve(run.series, series, self.name, view, bins) if series else EMPTY
            if len(curve.x):
                middle, label = (curve.low + curve.high) / 2 / self._quantity.scale, _joined(run.label, rank_name)
                # The strokes lie over the thread that joins the points, so that it has the run's colour too.
                own: list[Layer] = [Points(curve.x, middle, colour, label), Strokes(curve.x, middle, middle, colour)]
                layers += without_pauses(run.series, series[0], view, own)
        return layers

    def _curves(self, run: OverlaidRun, view: View, bins: int, colour: QColor, palette: QPalette) -> list[Layer]:
        """The mean over ranks; or each rank: a faint curve, and a line that its dashes tell from the others."""
        series = run.series
        strength, ranks = self._strength, run.ranks
        parts = [("", replace(self._options, hidden=set()))]
        if len(ranks) > 1 and not self._options.mean and not series.is_shared(self.name, ranks):
            everyone = set(series.ranks())
            parts = [(run.names.short(rank), replace(self._options, hidden=everyone - {rank})) for rank in ranks]
        layers: list[Layer] = []
        for turn, (rank_name, options) in enumerate(parts):
            mean, line = mean_curve(series, options, self.name, view, bins, strength)
            mean, line = self._sized(run, mean), self._sized(run, line)
            if not len(mean.x):
                continue
            label = _joined(run.label, rank_name)
            has_line = strength > 0 or len(parts) > 1
            raw = faint(colour, palette, RAW_SHARE) if has_line else colour
            layers.append(Strokes(mean.x, mean.low, mean.high, raw, label))
            if has_line:
                layers.append(Line(line.x, line.mean, colour, DASHES[turn % len(DASHES)], label + SMOOTHED))
        return without_pauses(series, series.clock(), view, layers)

    def readings(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        """Each run's value at the crosshair, or its last; runs without the column are left out."""
        if self._options.mean:
            return self._means(view, palette)
        found: list[Reading] = []
        for place, run in self._shown():
            ranks = list(self._groups(run))
            if not self._is_eval and run.series.is_shared(self.name, ranks):
                ranks = ranks[:1]
            for rank in ranks:
                name = run.names.short(rank) if len(ranks) > 1 else ""
                found += self._reading(place, run, _joined(run.short, name), view, [rank], palette)
        return found

    def legend(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        """Every run that has the column, also while it is hidden or has not begun at the crosshair."""
        shown = {reading.key: reading for reading in self._means(view, palette)}
        found: list[Reading] = []
        for place, run in enumerate(self._runs):
            key = f"{RUN_KEY}{place}"
            if key in shown:
                found.append(shown[key])
            elif self._groups(run):
                is_hidden = self._options.is_hidden(key)
                text = "" if is_hidden else UNKNOWN
                colour = rank_colour(place, palette)
                found.append(Reading(colour, run.short, text, self._is_eval, key=key, is_hidden=is_hidden))
        return found

    def _means(self, view: View, palette: QPalette) -> list[Reading]:
        return [
            reading
            for place, run in self._shown()
            for reading in self._reading(place, run, run.short, view, list(self._groups(run)), palette)
        ]

    @property
    def _strength(self) -> int:
        return 0 if self._quantity.is_smooth or self._is_eval else self._options.smoothing

    def _reading(
        self, place: int, run: OverlaidRun, label: str, view: View, ranks: Sequence[int], palette: QPalette
    ) -> list[Reading]:
        """What is said of ranks together; nothing where they have no value."""
        own = self._by_step(run, _own_view(run, view))
        value = self._value(run, own, ranks)
        if value is None:
            return []
        groups, text = self._groups(run), self._quantity.text
        line = smoothed_value([groups[rank] for rank in ranks], self.name, own, self._strength)
        smoothed = "" if line is None else text(line * self._factor(run))
        colour = rank_colour(place, palette)
        return [Reading(colour, label, text(value), self._is_eval, smoothed, f"{RUN_KEY}{place}")]

    def _by_step(self, run: OverlaidRun, view: View) -> View:
        """A crosshair in time as one at a step: ranks are aligned by step, as they are drawn."""
        if view.axis == "ts" and view.cursor is not None and not self._is_eval:
            return replace(view, axis="step", cursor=_step_at(run.series, view.cursor))
        return view

    def _value(self, run: OverlaidRun, view: View, ranks: Sequence[int]) -> float | None:
        """The mean of ranks; for a rate what it makes for all of a run's, unless each is drawn."""
        if not run.is_ready(self.name):
            return None
        groups = self._groups(run)
        mean = mean_of_values(value_of(groups[rank], self.name, view) for rank in ranks)
        if mean is None or (view.cursor is not None and math.isnan(view.cursor)):
            return None
        return mean * self._factor(run)

    def _factor(self, run: OverlaidRun) -> float:
        """Makes the mean of ranks the sum over them where that is shown, in the unit that is shown."""
        together = self._quantity.is_sum and self._options.mean
        return (len(run.series.ranks()) if together else 1) / self._quantity.scale

    def _sized(self, run: OverlaidRun, curve: Curve) -> Curve:
        factor = self._factor(run)
        if factor == 1:
            return curve
        return replace(curve, low=curve.low * factor, high=curve.high * factor, mean=curve.mean * factor)

    def _shown(self) -> list[tuple[int, OverlaidRun]]:
        return [(n, run) for n, run in enumerate(self._runs) if not self._options.is_hidden(f"{RUN_KEY}{n}")]

    def _groups(self, run: OverlaidRun) -> dict[int, Series]:
        """The series that have the column, by rank."""
        found = run.series.evaluations() if self._is_eval else {rank: run.series.rank(rank) for rank in run.ranks}
        return {rank: series for rank, series in found.items() if self.name in series.columns}


def reported_columns(runs: Sequence[OverlaidRun]) -> tuple[set[str], set[str]]:
    """Columns that any run has: of ranks, and of evaluations."""
    steps = {name for run in runs for rank in run.ranks for name in run.series.rank(rank).columns}
    return steps, {name for run in runs for series in run.series.evaluations().values() for name in series.columns}


def _own_view(run: OverlaidRun, view: View) -> View:
    """A view in the run's own Unix seconds, where the axis says seconds since its start."""
    if view.name in COUNTERS:
        counter = run.series.counter(view.name)
        if counter is None:
            return replace(view, low=-2.0, high=-1.0)  # it has no place on this axis
        steps, counts = counter
        low, high = np.interp((view.low, view.high), counts, steps).tolist()
        cursor = None if view.cursor is None else float(np.interp(view.cursor, counts, steps))
        return replace(view, low=low, high=high, cursor=cursor)
    if view.axis == "step" or view.name == "clock":
        return view
    start = run.start
    cursor = None if view.cursor is None else view.cursor + start
    return replace(view, low=view.low + start, high=view.high + start, cursor=cursor)


def _shared_places(run: OverlaidRun, view: View, own: View, places: Floats) -> Floats:
    """Places in a run's own view, on the axis that all runs share."""
    if view.name not in COUNTERS:
        return places - (own.low - view.low)
    counter = run.series.counter(view.name)
    return places if counter is None else np.interp(places, *counter)


def _step_at(series: RunSeries, ts: float) -> float:
    """The step under way at a time; the last one after a run's end, NaN before its first."""
    bounds = series.clock().bounds("ts")
    if bounds is not None and ts > bounds[1]:
        return float("inf")
    return float(series.step_positions(np.array([ts]))[0])


def _joined(label: str, rank_name: str) -> str:
    return f"{label} · {rank_name}" if rank_name else label
