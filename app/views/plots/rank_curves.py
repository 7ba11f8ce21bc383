"""Charts with a curve for each rank: a metric as it was reported, smoothed, and the throughput."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import EMPTY, Curve, mean_of, one_a_pixel, reduce_range
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.run_data.smoothing import half_width_rows, smoothed
from app.views.plots.curve_options import CurveOptions, rank_in
from app.views.plots.drawing import Layer, Line, Strokes, broken
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View
from app.views.style.palette import faint, plot_colours, rank_colour
from core.formatting import number, rate

SMOOTHED: Final = " smoothed"


class RankCurves:
    """One column of each rank: all that was reported, faint, and a smoothed line over it.

    Args:
        run: Gives the run that is shown just now.
        options: Shared by the plots.
        names: Columns to choose from; the first that the run has is drawn.
    """

    fed_by: tuple[str, ...] = ("rank",)
    floor: float | None = None
    unit = ""
    fixed_scale: Scale | None = None

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, names: tuple[str, ...]) -> None:
        self._run = run
        self._options = options
        self._names = names

    @property
    def name(self) -> str:
        """The column that is drawn."""
        run = self._run()
        groups = [run.rank(rank) for rank in self._options.offered(run)]
        return next((name for name in self._names if any(name in s.columns for s in groups)), self._names[0])

    def rows(self, view: View) -> int:
        """Those of the longest rank."""
        return rows_in(self._run().clock(), view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Faint strokes of every rank first, then every line, so that no line is hidden by another rank's noise."""
        run, name = self._run(), self.name
        half_width = half_width_rows(self._options.smoothing, self.rows(view), bins)
        curves: list[tuple[Series, str, QColor, Curve, Curve]] = []
        if self._options.mean:
            mean, line = mean_curve(run, self._options, name, view, bins, half_width)
            curves.append((run.clock(), "mean", plot_colours(palette).text, mean, line))
        else:
            for rank in self._options.ranks(run):
                series = run.rank(rank)
                curve, first = reduce_range(series, name, view.axis, view.low, view.high, bins)
                line = _bold(series, name, curve, first, half_width, bins)
                curves.append((series, self._options.names.short(rank), rank_colour(rank, palette), curve, line))
        strokes: list[Layer] = []
        lines: list[Layer] = []
        for series, label, colour, curve, line in curves:
            curve, line = joined(curve), joined(line)
            if len(curve.x):
                raw = faint(colour, palette, 0.32 if half_width > 0 else 1.0)
                layers: list[Layer] = [Strokes(curve.x, curve.low, curve.high, raw, label)]
                if half_width > 0:
                    layers.append(Line(line.x, line.mean, colour, label=label + SMOOTHED))
                layers = without_pauses(run, series, view, layers)
                strokes.append(layers[0])
                lines += layers[1:]
        return [*strokes, *lines]

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """Each rank's reported and smoothed value, or the means of them."""
        values = self._values(view)
        if self._options.mean:
            mean = mean_of_values(values.values())
            return [self._reading(plot_colours(palette).text, "mean", mean, view, layers)] if values else []
        names = self._options.names
        readings = [
            (r, self._reading(rank_colour(r, palette), names.short(r), v, view, layers)) for r, v in values.items()
        ]
        return [replace(reading, key=f"rank {rank}") for rank, reading in readings]

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The readings, with what is hidden at its own place."""
        shown = self.readings(view, palette, layers)
        run, options = self._run(), self._options
        if not options.mean:
            ranks = [rank for rank in options.offered(run) if rank in options.hidden]
            hidden = [
                Reading(rank_colour(r, palette), options.names.short(r), "", key=f"rank {r}", is_hidden=True)
                for r in ranks
            ]
            sums = sum(not reading.key for reading in shown)
            ranked = [*shown[sums:], *hidden]
            shown[sums:] = sorted(ranked, key=lambda r: rank if (rank := rank_in(r.key)) is not None else 1 << 30)
        return shown

    def _reading(self, colour: QColor, label: str, value: float | None, view: View, layers: Sequence[Layer]) -> Reading:
        line = line_at(layers, label, view.cursor)
        value = _stroke_at(layers, label, view.cursor) if value is None else value
        return Reading(colour, label, self._text(value), smoothed="" if line is None else self._text(line))

    def _values(self, view: View) -> dict[int, float | None]:
        run, name = self._run(), self.name
        return {rank: value_of(run.rank(rank), name, view) for rank in self._options.ranks(run)}

    def _text(self, value: float | None) -> str:
        return number(value)


class MetricCurves(RankCurves):
    """A column that a recipe or a script named."""

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, name: str) -> None:
        super().__init__(run, options, (name,))


class PlainCurves(MetricCurves):
    """A column as it was reported, without smoothing: its jumps are what there is to see."""

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Strokes of every rank."""
        shared, self._options = self._options, replace(self._options, smoothing=0)
        try:
            return super().layers(view, bins, palette)
        finally:
            self._options = shared


class ThroughputCurves(RankCurves):
    """Tokens a second of each rank; the sum over ranks in the readout."""

    floor = 0.0

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(run, options, ("tokens_per_s", "samples_per_s"))

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """All ranks together, then each."""
        run, name, hidden = self._run(), self.name, self._options.hidden
        values = [value_of(run.rank(rank), name, view) for rank in run.ranks() if rank not in hidden]
        known = [value for value in values if value is not None]
        if not values:
            return []
        line = self._line_of_all(len(values), view, layers)
        smoothed_total = "" if line is None else self._rate(line)
        total = Reading(None, "", self._rate(sum(known) if known else None), smoothed=smoothed_total)
        return [total, *(super().readings(view, palette, layers) if len(values) > 1 else [])]

    def _line_of_all(self, ranks: int, view: View, layers: Sequence[Layer]) -> float | None:
        """The sum of the bold lines, or what the mean's makes for all ranks; None where ranks are left undrawn."""
        drawn = self._options.ranks(self._run())
        labels = ["mean"] if self._options.mean else [self._options.names.short(rank) for rank in drawn]
        lines = [value for label in labels if (value := line_at(layers, label, view.cursor)) is not None]
        if len(drawn) < ranks or len(lines) < len(labels):
            return None
        return sum(lines) * (ranks if self._options.mean else 1)

    def _rate(self, value: float | None) -> str:
        return rate(value, "tok/s" if self.name == "tokens_per_s" else "samples/s")

    def _text(self, value: float | None) -> str:
        return rate(value, "").strip()


def without_pauses(run: RunSeries, series: Series, view: View, layers: list[Layer]) -> list[Layer]:
    """On the time axis, nothing is drawn while the run was not going.

    Args:
        run: Knows when it was launched.
        series: What the layers are made of.
        view: On which axis.
        layers: As made.
    """
    gaps = run.pauses(series, view.low, view.high) if view.axis == "ts" else []
    return [broken(layer, gaps) for layer in layers] if gaps else layers


def joined(curve: Curve) -> Curve:
    """A curve without the gaps between values that stand alone.

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


def mean_curve(
    run: RunSeries, options: CurveOptions, name: str, view: View, bins: int, half_width: float
) -> tuple[Curve, Curve]:
    """The mean over ranks, aligned by step whatever the axis is, and its smoothed line."""
    steps = steps_in(run, view)
    if steps is None:
        return EMPTY, EMPTY
    curves: list[Curve] = []
    lines: list[Curve] = []
    for rank in options.ranks(run):
        series = run.rank(rank)
        curve, first = reduce_range(series, name, "step", *steps, bins)
        curves.append(curve)
        lines.append(_bold(series, name, curve, first, half_width, bins))
    mean, line = mean_of(curves), mean_of(lines, bounds=False)
    if view.axis == "ts":
        return by_time(run, mean), by_time(run, line)
    return mean, line


def by_time(run: RunSeries, curve: Curve) -> Curve:
    """A curve over steps where they have a time; a rank may have reached steps that the longest one never did."""
    x = run.time_positions(curve.x)
    there = ~np.isnan(x)
    return Curve(x[there], curve.low[there], curve.high[there], curve.mean[there], curve.width)


def _bold(series: Series, name: str, curve: Curve, first: int, half_width: float, bins: int) -> Curve:
    """The smoothed line of a curve that was drawn in at most `bins` bins, two of which are one of the line's."""
    thin, start = one_a_pixel(curve, first, bins / 2)
    line = smoothed(series, name, thin, start, half_width)
    return Curve(thin.x, line, line, line, thin.width)


def steps_in(run: RunSeries, view: View) -> tuple[float, float] | None:
    """The steps that a view shows; None while there is none."""
    return (view.low, view.high) if view.axis == "step" else run.steps_of(view.low, view.high)


def rows_in(series: Series, view: View) -> int:
    """How many rows of a series a view shows."""
    first, last = series.rows_between(view.axis, view.low, view.high)
    return last - first


def line_at(layers: Sequence[Layer], label: str, cursor: float | None) -> float | None:
    """What the smoothed line of a label shows at the crosshair, or at its end without one."""
    line = next((one for one in layers if isinstance(one, Line) and one.label == label + SMOOTHED), None)
    if line is None:
        return None
    known = np.flatnonzero(np.isfinite(line.y[: None if cursor is None else np.searchsorted(line.x, cursor, "right")]))
    return float(line.y[known[-1]]) if len(known) else None


def _stroke_at(layers: Sequence[Layer], label: str, cursor: float | None) -> float | None:
    """What the curve of a label shows at the crosshair: the value before it, where values stand alone."""
    curve = next((one for one in layers if isinstance(one, Strokes) and one.label == label), None)
    place = -1 if curve is None or cursor is None else int(np.searchsorted(curve.x, cursor, "right")) - 1
    if curve is None or place < 0:
        return None
    value = float(curve.low[place] + curve.high[place]) / 2
    return value if math.isfinite(value) else None


def value_of(series: Series, name: str, view: View) -> float | None:
    """The value at the crosshair, or the newest without one."""
    return series.last(name) if view.cursor is None else series.value_at(name, view.axis, view.cursor)


def mean_of_values(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
