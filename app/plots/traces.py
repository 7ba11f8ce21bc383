"""Traces: the curves of a chart, each of one rank, of several together, or of evaluations; drawn and read alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.plots.curve_options import CurveOptions
from app.plots.drawing import Layer, Line, Points, Strokes, broken, cut
from app.plots.scale import Scale
from app.plots.source import Reading, View
from app.run_data.curves import EMPTY, Curve, mean_of, reduce_range
from app.run_data.pyramid import Floats
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.run_data.smoothing import half_width_rows, smooth_line, smoothed_at
from app.style.palette import faint
from core.formatting import UNKNOWN, number, rate, short_duration
from core.metrics.last_value import last_value
from core.metrics.metric import Metric

SMOOTHED: Final = " smoothed"
RAW_SHARE: Final = 0.32


class Placed(Protocol):
    """A run beside others, or samples by time: they have their own place on the axis that is shown."""

    def own_view(self, view: View) -> View:
        """Map a view of the shared axis to their own."""

    def shared_places(self, view: View, places: Floats) -> Floats:
        """Map places in their own view to the shared axis; NaN beside it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One curve of a chart.

    Attributes:
        series: Its values; of several their mean, or for a rate their sum.
        colour: Of the curve; None: its value is read, nothing is drawn.
        key: Names it where it can be hidden.
        text: Its value as people read it.
        layer_label: As `label`, in a table of values.
        is_shared: All its series have the same values, so that one of them is drawn.
        is_sum: Its value is that of all series together.
        stands_for: The number of ranks; more than there are series where some were picked.
        is_measured: Drawn as a line through its values.
        best: The series and row of the best evaluation of all.
        place: Of its run among others; None for a run that is shown alone.
    """

    run: RunSeries
    series: tuple[Series, ...]
    metric: Metric
    label: str
    colour: QColor | None
    key: str = ""
    text: Callable[[float | None], str] = number
    layer_label: str = ""
    is_ring: bool = False
    is_shared: bool = False
    is_sum: bool = False
    stands_for: int = 0
    is_measured: bool = False
    best: tuple[Series, int] | None = None
    place: Placed | None = None

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def drawn(self) -> tuple[Series, ...]:
        return self.series[:1] if self.is_shared else self.series

    @property
    def factor(self) -> float:
        """Factor from the mean of the series to the shown value."""
        return (max(self.stands_for, len(self.series)) if self.is_sum else 1) / self.metric.divisor

    def own_view(self, view: View) -> View:
        return view if self.place is None else self.place.own_view(view)

    def value(self, view: View) -> float | None:
        values = [value_of(one, self.name, view) for one in self.series]
        if not self.is_sum:
            mean = mean_of_values(values)
            return None if mean is None else mean * self.factor
        total = last_value(self.name, values)
        return None if total is None else total * max(1.0, self.stands_for / len(self.series))

    def smoothed(self, view: View, strength: int) -> float | None:
        """The bold line's value at the crosshair; None without a crosshair, and without smoothing."""
        if view.cursor is None or not strength or self.is_ring:
            return None
        found = (smoothed_at(s, self.name, view.axis, view.cursor, half_width_rows(strength, s)) for s in self.drawn)
        mean = mean_of_values(found)
        return None if mean is None else mean * self.factor


class TraceChart:
    """A source of a plot that is made of traces."""

    floor: float | None = None
    unit = ""
    fixed_scale: Scale | None = None

    def __init__(self, options: CurveOptions) -> None:
        self._options = options

    def traces(self, palette: QPalette) -> list[Trace]:
        raise NotImplementedError

    def note(self) -> str:
        return ""

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Draw all reported values first, then every line, so that no line is hidden by another rank's noise."""
        behind: list[Layer] = []
        front: list[Layer] = []
        for trace in self.traces(palette):
            if trace.colour is None or not trace.series or self._options.is_hidden(trace.key):
                continue
            own, colour = trace.own_view(view), trace.colour
            made = rings(trace, colour, own, bins) if trace.is_ring else self._curve(trace, colour, own, bins, palette)
            is_one = trace.is_ring or len(trace.drawn) == 1
            made = without_pauses(trace.run, trace.series[0] if is_one else trace.run.clock(), own, made)
            if trace.place is not None:
                made = [_moved(layer, trace.place.shared_places(view, layer.x)) for layer in made]
            many = 0 if trace.is_ring else 1
            behind += made[:many]
            front += made[many:]
        return [*behind, *front]

    def _curve(self, trace: Trace, colour: QColor, view: View, bins: int, palette: QPalette) -> list[Layer]:
        strength, label = self._strength(trace), trace.layer_label or trace.label
        curve, line = (_scaled(one, trace.factor) for one in curve_and_line(trace, view, bins, strength))
        if not len(curve.x):
            return []
        if trace.is_measured and curve.width == 1:
            return [Line(curve.x, curve.low, curve.low, colour, label)]  # a faint curve below would be the same one
        has_line = bool(strength) or trace.is_measured
        raw = faint(colour, palette, RAW_SHARE) if has_line else colour
        layers: list[Layer] = [Strokes(curve.x, curve.low, curve.high, raw, label)]
        if has_line:
            layers.append(Line(line.x, line.mean, line.mean, colour, label + SMOOTHED))
        return layers

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """Values of the curves that are not hidden, at the crosshair or the last ones."""
        shown = [trace for trace in self.traces(palette) if not self._options.is_hidden(trace.key)]
        found = [self._reading(trace, view, layers) for trace in shown]
        return [one for one, trace in zip(found, shown, strict=True) if trace.place is None or one.text != UNKNOWN]

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """`readings` with hidden curves, and compared runs that have no value at the crosshair."""
        return [self._reading(trace, view, layers) for trace in self.traces(palette)]

    def _strength(self, trace: Trace) -> int:
        return 0 if trace.metric.is_set else self._options.smoothing

    def _reading(self, trace: Trace, view: View, layers: Sequence[Layer]) -> Reading:
        if self._options.is_hidden(trace.key):
            return Reading(trace.colour, trace.label, "", trace.is_ring, key=trace.key, is_hidden=True)
        own = trace.own_view(view)
        value = trace.value(own)
        if value is None and trace.place is None:
            value = _stroke_at(layers, trace.layer_label or trace.label, view.cursor)
        line = trace.smoothed(own, self._strength(trace))
        smoothed = "" if line is None or value is None else trace.text(line)
        best = None if trace.best is None else trace.best[0].cell(trace.name, trace.best[1])
        is_best = value is not None and value == best
        return Reading(trace.colour, trace.label, trace.text(value), trace.is_ring, smoothed, trace.key, False, is_best)


def figure_text(metric: Metric, *, with_unit: bool = True) -> Callable[[float | None], str]:
    if metric.is_rate:
        return lambda value: rate(value, metric.short_unit if with_unit else "").strip()
    if metric.short_unit == "s":
        return lambda value: UNKNOWN if value is None else short_duration(value)
    return (lambda value: f"{number(value)} {metric.short_unit}") if metric.short_unit else number


def rings(trace: Trace, colour: QColor, view: View, bins: int) -> list[Layer]:
    """Return evaluations of a trace: the mean of its series by step, the best one with a star."""
    if len(trace.series) == 1:
        curve = reduce_range(trace.series[0], trace.name, view.axis, view.low, view.high, bins)[0]
    else:
        steps = steps_in(trace.run, view) or (0.0, 0.0)
        curve = mean_of([reduce_range(one, trace.name, "step", *steps, bins)[0] for one in trace.series])
        curve = curve if view.axis == "step" else by_time(trace.run, curve)
    if not len(curve.x):
        return []
    star = None
    if trace.best is not None and trace.best[0] in trace.series:
        series, row = trace.best
        star = (series.cell(view.axis, row), series.cell(trace.name, row))
    middle, label = (curve.low + curve.high) / 2 / trace.metric.divisor, trace.layer_label or trace.label
    points = Points(curve.x, middle, middle, colour, label, star)
    # Of compared runs, strokes lie over the thread that joins the points, so that it has the run's colour too.
    return [points] if trace.place is None else [points, Strokes(curve.x, middle, middle, colour)]


def curve_and_line(trace: Trace, view: View, bins: int, strength: int) -> tuple[Curve, Curve]:
    """Return the reported curve and its smoothed line; of several series the means by step, on any axis."""
    if len(trace.drawn) == 1:
        curve, line = _one_curve(trace.drawn[0], trace.name, view, bins, strength)
        return joined(curve), joined(line)
    steps = steps_in(trace.run, view)
    if steps is None:
        return EMPTY, EMPTY
    by_step = replace(view, axis="step", low=steps[0], high=steps[1])
    pairs = [_one_curve(series, trace.name, by_step, bins, strength) for series in trace.drawn]
    mean, line = mean_of([pair[0] for pair in pairs]), mean_of([pair[1] for pair in pairs], bounds=False)
    if view.axis == "ts":
        mean, line = by_time(trace.run, mean), by_time(trace.run, line)
    return joined(mean), joined(line)


def _one_curve(series: Series, name: str, view: View, bins: int, strength: int) -> tuple[Curve, Curve]:
    curve, first = reduce_range(series, name, view.axis, view.low, view.high, bins)
    return curve, smooth_line(series, name, view.axis, curve, first, half_width_rows(strength, series), bins / 2)


def _moved(layer: Layer, x: Floats) -> Layer:
    """Return a layer at other places, without points that have none."""
    there = ~np.isnan(x)
    return replace(layer, x=x) if there.all() else replace(cut(layer, there), x=x[there])


def _scaled(curve: Curve, factor: float) -> Curve:
    if factor == 1:
        return curve
    return replace(curve, low=curve.low * factor, high=curve.high * factor, mean=curve.mean * factor)


def without_pauses(run: RunSeries, series: Series, view: View, layers: list[Layer]) -> list[Layer]:
    """Leave out, on the time axis, the times when the run was not going; the layers are made of `series`."""
    gaps = run.pauses(series, view.low, view.high) if view.axis == "ts" else []
    return [broken(layer, gaps) for layer in layers] if gaps else layers


def joined(curve: Curve) -> Curve:
    """Return a curve without the gaps between values that stand alone.

    A script that reports one metric at every step and another at every tenth has nine rows without a value between
    two of the other's. A gap between stretches of values stays.
    """
    known = ~np.isnan(curve.mean)
    if known.all() or not known.any():
        return curve
    alone = known.copy()
    alone[1:] &= ~known[:-1]
    alone[:-1] &= ~known[1:]
    if 2 * int(alone.sum()) < int(known.sum()):
        return curve
    x, mean, low = curve.x[known], curve.mean[known], curve.low[known]
    return Curve(x, low, low if curve.high is curve.low else curve.high[known], mean, curve.width)


def by_time(run: RunSeries, curve: Curve) -> Curve:
    """Return a curve over time; a rank may have reached steps that the longest one never did, without a time."""
    x = run.time_positions(curve.x)
    there = ~np.isnan(x)
    return Curve(x[there], curve.low[there], curve.high[there], curve.mean[there], curve.width)


def steps_in(run: RunSeries, view: View) -> tuple[float, float] | None:
    """Steps in a view; None while there is none."""
    return (view.low, view.high) if view.axis == "step" else run.steps_of(view.low, view.high)


def rows_in(series: Series, view: View) -> int:
    first, last = series.rows_between(view.axis, view.low, view.high)
    return last - first


def value_of(series: Series, name: str, view: View) -> float | None:
    """Value at the crosshair, or the newest without one."""
    return series.last(name) if view.cursor is None else series.value_at(name, view.axis, view.cursor)


def mean_of_values(values: Iterable[float | None]) -> float | None:
    """Mean of the known values; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _stroke_at(layers: Sequence[Layer], label: str, cursor: float | None) -> float | None:
    """Return the drawn value at the crosshair: the value before it, where values stand alone."""
    curve = next((one for one in layers if isinstance(one, Strokes) and one.label == label), None)
    place = -1 if curve is None or cursor is None else int(np.searchsorted(curve.x, cursor, "right")) - 1
    if curve is None or place < 0:
        return None
    value = float(curve.low[place] + curve.high[place]) / 2
    return value if math.isfinite(value) else None
