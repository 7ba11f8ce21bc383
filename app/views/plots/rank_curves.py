"""Charts with a curve for each rank: a metric as it was reported, smoothed, and the throughput."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import EMPTY, Curve, mean_of, reduce_range
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.run_data.smoothing import half_width_rows, smooth_line, smoothed_at
from app.views.plots.curve_options import CurveOptions, rank_in
from app.views.plots.drawing import Layer, Line, Strokes, broken
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View
from app.views.style.palette import faint, plot_colours, rank_colour
from core.formatting import number, rate
from core.metrics.last_value import last_value

SMOOTHED: Final = " smoothed"
MEAN: Final = "mean"
# Whose curve it is where they all report the same.
ALL: Final = "all devices"


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
        run = self._run()
        groups = [run.rank(rank) for rank in self._options.offered(run)]
        return next((name for name in self._names if any(name in s.columns for s in groups)), self._names[0])

    def rows(self, view: View) -> int:
        return rows_in(self._run().clock(), view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Faint strokes of every rank first, then every line, so that no line is hidden by another rank's noise."""
        run, name, strength = self._run(), self.name, self._strength
        curves: list[tuple[Series, str, QColor, Curve, Curve]] = []
        if self._options.mean and not self._shared():
            mean, line = mean_curve(run, self._options, name, view, bins, strength)
            curves.append((run.clock(), MEAN, plot_colours(palette).text, mean, line))
        else:
            for ranks, label, colour in self._drawn(palette):
                series = run.rank(ranks[0])
                curve, first = reduce_range(series, name, view.axis, view.low, view.high, bins)
                half_width = half_width_rows(strength, series)
                line = smooth_line(series, name, view.axis, curve, first, half_width, bins / 2)
                curves.append((series, label, colour, curve, line))
        strokes: list[Layer] = []
        lines: list[Layer] = []
        for series, label, colour, curve, line in curves:
            curve, line = joined(curve), joined(line)
            if len(curve.x):
                raw = faint(colour, palette, 0.32 if strength else 1.0)
                layers: list[Layer] = [Strokes(curve.x, curve.low, curve.high, raw, label)]
                if strength:
                    layers.append(Line(line.x, line.mean, colour, label=label + SMOOTHED))
                layers = without_pauses(run, series, view, layers)
                strokes.append(layers[0])
                lines += layers[1:]
        return [*strokes, *lines]

    @property
    def _strength(self) -> int:
        return self._options.smoothing

    def _shared(self) -> bool:
        """All ranks report the same values, such as the learning rate: one curve says it."""
        run = self._run()
        return run.is_shared(self.name, self._options.offered(run))

    def _drawn(self, palette: QPalette) -> list[tuple[list[int], str, QColor]]:
        """The curves while the mean is not asked for: whose each is, what it is called, and its colour."""
        ranks, names = self._options.ranks(self._run()), self._options.names
        if self._shared():
            return [(ranks, ALL, plot_colours(palette).text)] if ranks else []
        return [([rank], names.short(rank), rank_colour(rank, palette)) for rank in ranks]

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The mean of the ranks' values, and each of them."""
        ranks = self._options.ranks(self._run())
        if not ranks:
            return []
        if self._options.mean and not self._shared():
            return [self._reading(ranks, MEAN, plot_colours(palette).text, view, layers)]
        found = [self._reading(*drawn, view, layers) for drawn in self._drawn(palette)]
        if self._shared():
            return found
        found = [replace(reading, key=f"rank {rank}") for rank, reading in zip(ranks, found, strict=True)]
        return [self._reading(ranks, MEAN, None, view, layers), *found] if len(found) > 1 else found

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The readings, with what is hidden at its own place."""
        shown = self.readings(view, palette, layers)
        run, options = self._run(), self._options
        if not options.mean and not self._shared():
            ranks = [rank for rank in options.offered(run) if rank in options.hidden]
            hidden = [
                Reading(rank_colour(r, palette), options.names.short(r), "", key=f"rank {r}", is_hidden=True)
                for r in ranks
            ]
            sums = sum(not reading.key for reading in shown)
            ranked = [*shown[sums:], *hidden]
            shown[sums:] = sorted(ranked, key=lambda r: rank if (rank := rank_in(r.key)) is not None else 1 << 30)
        return shown

    def _reading(
        self, ranks: Sequence[int], label: str, colour: QColor | None, view: View, layers: Sequence[Layer]
    ) -> Reading:
        """What is said of ranks together: the mean of their values, and of their smoothed ones at the crosshair."""
        run, name = self._run(), self.name
        value = mean_of_values(value_of(run.rank(rank), name, view) for rank in ranks)
        value = _stroke_at(layers, label, view.cursor) if value is None else value
        line = smoothed_value([run.rank(rank) for rank in ranks], name, view, self._strength)
        return Reading(colour, label, self._text(value), smoothed="" if line is None else self._text(line))

    def _text(self, value: float | None) -> str:
        return number(value)


class MetricCurves(RankCurves):
    """A column that a recipe or a script named."""

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, name: str) -> None:
        super().__init__(run, options, (name,))


class PlainCurves(MetricCurves):
    """A column as it was reported, without smoothing: its jumps are what there is to see."""

    @property
    def _strength(self) -> int:
        return 0


class ThroughputCurves(RankCurves):
    """Tokens a second of each rank; the sum over ranks in the readout."""

    floor = 0.0

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(run, options, ("tokens_per_s", "samples_per_s"))

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        run, name, hidden = self._run(), self.name, self._options.hidden
        ranks = [rank for rank in run.ranks() if rank not in hidden]
        if not ranks:
            return []
        total = last_value(name, [value_of(run.rank(rank), name, view) for rank in ranks])
        line = smoothed_value([run.rank(rank) for rank in ranks], name, view, self._strength)
        smoothed = "" if line is None else self._rate(len(ranks) * line)
        each = super().readings(view, palette, layers) if len(ranks) > 1 else []
        of_all = Reading(None, "", self._rate(total), smoothed=smoothed)
        return [of_all, *(reading for reading in each if reading.colour is not None)]

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
    run: RunSeries, options: CurveOptions, name: str, view: View, bins: int, strength: int
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
        half_width = half_width_rows(strength, series)
        lines.append(smooth_line(series, name, "step", curve, first, half_width, bins / 2))
    mean, line = mean_of(curves), mean_of(lines, bounds=False)
    if view.axis == "ts":
        return by_time(run, mean), by_time(run, line)
    return mean, line


def smoothed_value(ranks: Sequence[Series], name: str, view: View, strength: int) -> float | None:
    """The mean of ranks' smoothed values at the crosshair; None without a crosshair, and without smoothing."""
    if view.cursor is None or not strength:
        return None
    found = (smoothed_at(one, name, view.axis, view.cursor, half_width_rows(strength, one)) for one in ranks)
    return mean_of_values(found)


def by_time(run: RunSeries, curve: Curve) -> Curve:
    """A curve over steps where they have a time; a rank may have reached steps that the longest one never did."""
    x = run.time_positions(curve.x)
    there = ~np.isnan(x)
    return Curve(x[there], curve.low[there], curve.high[there], curve.mean[there], curve.width)


def steps_in(run: RunSeries, view: View) -> tuple[float, float] | None:
    """The steps that a view shows; None while there is none."""
    return (view.low, view.high) if view.axis == "step" else run.steps_of(view.low, view.high)


def rows_in(series: Series, view: View) -> int:
    """How many rows of a series a view shows."""
    first, last = series.rows_between(view.axis, view.low, view.high)
    return last - first


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
