"""Plots with a curve for each rank: loss, throughput, and the step's time in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import EMPTY, Curve, mean_of, one_a_pixel, reduce_range
from app.run_data.pyramid import Floats
from app.run_data.run_series import RunSeries
from app.run_data.series import Series, XAxis
from app.run_data.smoothing import half_width_rows, smoothed
from app.views.plots.drawing import Area, Layer, Line, Points, Strokes, broken
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View
from app.views.style.palette import faint, plot_colours, rank_colour
from core.formatting import UNKNOWN, number, rate, short_duration
from core.machine.devices.names import RankNames

FIRST_SMOOTHING = 32
SMOOTHED = " smoothed"
EVAL = "eval"
"""The key of the evaluations."""
MOST_RANKS = 32
"""Drawn, named and averaged; of more, these are picked evenly. Hundreds of curves cannot be told apart."""


@dataclass(slots=True)
class CurveOptions:
    """What a person chose for all plots with ranks.

    Attributes:
        smoothing: Pixels on each side that count for a point of the bold line; 0 turns smoothing off.
        mean: One curve, the mean over ranks, instead of one a rank.
        hidden: Ranks that are not drawn (and not in the mean).
        hidden_curves: Keys of other curves that are not drawn.
        names: What ranks are called in a readout.
    """

    smoothing: int = FIRST_SMOOTHING
    mean: bool = False
    hidden: set[int] = field(default_factory=set)
    hidden_curves: set[str] = field(default_factory=set)
    names: RankNames = field(default_factory=RankNames)

    def ranks(self, run: RunSeries) -> list[int]:
        """The ranks that are drawn."""
        return [rank for rank in self.offered(run) if rank not in self.hidden]

    def offered(self, run: RunSeries) -> list[int]:
        """The ranks to choose from."""
        ranks = run.ranks()
        return ranks[:: -(-len(ranks) // MOST_RANKS)] if len(ranks) > MOST_RANKS else ranks

    def is_hidden(self, key: str) -> bool:
        """Whether a curve is not drawn."""
        rank = _rank_in(key)
        return key in self.hidden_curves if rank is None else rank in self.hidden

    def hide(self, key: str, hidden: bool) -> None:
        """Hides a curve, or shows it."""
        rank = _rank_in(key)
        if rank is None:
            (self.hidden_curves.add if hidden else self.hidden_curves.discard)(key)
        else:
            (self.hidden.add if hidden else self.hidden.discard)(rank)

    def choose(self, key: str, alone: bool, keys: Sequence[str]) -> None:
        """Hides or shows a curve; or shows it alone, and if it is alone already, all.

        Args:
            key: The curve.
            alone: Hide the others.
            keys: All curves of its chart.
        """
        if not alone:
            self.hide(key, not self.is_hidden(key))
            return
        is_alone = [one for one in keys if not self.is_hidden(one)] == [key]
        for one in keys:
            self.hide(one, one != key and not is_alone)


def _rank_in(key: str) -> int | None:
    return int(key[5:]) if key.startswith("rank ") else None


class RankCurves:
    """One column of each rank: all that was reported, faint, and a smoothed line over it.

    Args:
        run: Gives the run that is shown just now.
        options: Shared by the plots.
        names: Columns to choose from; the first that the run has is drawn.
    """

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
        return _rows(self._run().clock(), view)

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
            mean = _mean(values.values())
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
            shown[sums:] = sorted(ranked, key=lambda r: rank if (rank := _rank_in(r.key)) is not None else 1 << 30)
        return shown

    def _reading(self, colour: QColor, label: str, value: float | None, view: View, layers: Sequence[Layer]) -> Reading:
        line = _line_at(layers, label, view.cursor)
        return Reading(colour, label, self._text(value), smoothed="" if line is None else self._text(line))

    def _values(self, view: View) -> dict[int, float | None]:
        run, name = self._run(), self.name
        return {rank: _value(run.rank(rank), name, view) for rank in self._options.ranks(run)}

    def _text(self, value: float | None) -> str:
        return number(value)


class PlainCurves(RankCurves):
    """A column as it was reported, without smoothing: its jumps are what there is to see."""

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, name: str) -> None:
        super().__init__(run, options, (name,))

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Strokes of every rank."""
        shared, self._options = self._options, replace(self._options, smoothing=0)
        try:
            return super().layers(view, bins, palette)
        finally:
            self._options = shared


class LossCurves(RankCurves):
    """The loss of each rank, and the evaluations."""

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(run, options, ("loss",))

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """The curves, and evaluations as joined points over them."""
        layers = super().layers(view, bins, palette)
        if self._options.is_hidden(EVAL):
            return layers
        curve, _ = reduce_range(self._run().evals, "val_loss", view.axis, view.low, view.high, bins)
        if len(curve.x):
            middle, colour = (curve.low + curve.high) / 2, plot_colours(palette).eval
            points = Points(curve.x, middle, colour, "evaluation", self._best(view.axis))
            layers += without_pauses(self._run(), self._run().evals, view, [points])
        return layers

    def _best(self, axis: XAxis) -> tuple[float, float] | None:
        """Where the lowest loss was evaluated; None before the second evaluation."""
        evals = self._run().evals
        values = evals.columns["val_loss"].read(0, evals.rows)
        if np.isfinite(values).sum() < 2:
            return None
        row = int(np.nanargmin(np.where(np.isfinite(values), values, np.nan)))
        return float(evals.columns[axis].read(row, row + 1)[0]), float(values[row])

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The losses, and the evaluation before."""
        readings = super().readings(view, palette, layers)
        evals = self._run().evals
        if evals.rows and not self._options.is_hidden(EVAL):
            text = self._text(_value(evals, "val_loss", view))
            readings.append(Reading(plot_colours(palette).eval, "eval", text, is_ring=True, key=EVAL))
        return readings

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """With the evaluations, also while they are hidden."""
        legend = super().legend(view, palette, layers)
        if self._run().evals.rows and self._options.is_hidden(EVAL):
            legend.append(Reading(plot_colours(palette).eval, "eval", "", is_ring=True, key=EVAL, is_hidden=True))
        return legend


class EvalPoints(RankCurves):
    """What an evaluation measured, besides the loss: joined points."""

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, name: str) -> None:
        super().__init__(run, options, (name,))

    def rows(self, view: View) -> int:
        """Evaluations."""
        return _rows(self._run().evals, view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """The evaluations."""
        curve, _ = reduce_range(self._run().evals, self._names[0], view.axis, view.low, view.high, bins)
        if not len(curve.x):
            return []
        points = Points(curve.x, (curve.low + curve.high) / 2, plot_colours(palette).eval, self._names[0])
        return without_pauses(self._run(), self._run().evals, view, [points])

    def readings(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        """The evaluation before."""
        evals = self._run().evals
        if not evals.rows:
            return []
        text = self._text(_value(evals, self._names[0], view))
        return [Reading(plot_colours(palette).eval, "eval", text, is_ring=True)]


class ThroughputCurves(RankCurves):
    """Tokens a second of each rank; the sum over ranks in the readout."""

    floor = 0.0

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(run, options, ("tokens_per_s", "samples_per_s"))

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """All ranks together, then each."""
        run, name, hidden = self._run(), self.name, self._options.hidden
        values = [_value(run.rank(rank), name, view) for rank in run.ranks() if rank not in hidden]
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
        lines = [value for label in labels if (value := _line_at(layers, label, view.cursor)) is not None]
        if len(drawn) < ranks or len(lines) < len(labels):
            return None
        return sum(lines) * (ranks if self._options.mean else 1)

    def _rate(self, value: float | None) -> str:
        return rate(value, "tok/s" if self.name == "tokens_per_s" else "samples/s")

    def _text(self, value: float | None) -> str:
        return rate(value, "").strip()


class StepTime:
    """How long a step takes: waiting (for data, for other ranks) at the bottom, working on top; the mean over ranks."""

    floor: float | None = 0.0
    unit = "s"
    fixed_scale: Scale | None = None

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        self._run = run
        self._options = options

    def rows(self, view: View) -> int:
        """Those of the longest rank."""
        return _rows(self._run().clock(), view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Two areas, one on the other."""
        run, colours = self._run(), plot_colours(palette)
        parts = {name: self._mean(run, name, view, bins // 2) for name in ("step_time_s", "data_wait_s", "sync_wait_s")}
        x, total = parts["step_time_s"]
        if not len(x):
            return []
        wait = np.zeros(len(x))
        for name in ("data_wait_s", "sync_wait_s"):
            wait_x, values = parts[name]
            if len(wait_x) == len(x):
                wait += np.nan_to_num(values)
        known = ~np.isnan(x)
        x, total, wait = x[known], total[known], np.fmin(wait, total)[known]
        nothing = np.zeros(len(x))
        areas: dict[str, Layer] = {"wait": Area(x, nothing, wait, colours.wait, "wait s")}
        if self._options.is_hidden("wait"):
            areas["work"] = Area(x, nothing, total - wait, colours.work, "work s")
        else:
            areas["work"] = Area(x, wait, total, colours.work, "work s")
        shown = [area for key, area in areas.items() if not self._options.is_hidden(key)]
        return without_pauses(run, run.clock(), view, shown)

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """Wait and work, in milliseconds or seconds."""
        return [reading for reading in self.legend(view, palette, layers) if not reading.is_hidden]

    def legend(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        """Both, also while one is hidden."""
        texts, colours = self._texts(view), plot_colours(palette)
        return [
            Reading(colour, key, texts[key], key=key, is_hidden=self._options.is_hidden(key))
            for key, colour in (("wait", colours.wait), ("work", colours.work))
            if key in texts
        ]

    def _texts(self, view: View) -> dict[str, str]:
        run = self._run()
        ranks = self._options.ranks(run)
        if not any("step_time_s" in run.rank(rank).columns for rank in ranks):
            return {}
        total = _mean(_value(run.rank(rank), "step_time_s", view) for rank in ranks)
        waits = [_mean(_value(run.rank(rank), n, view) for rank in ranks) for n in ("data_wait_s", "sync_wait_s")]
        if total is None:
            return {"wait": UNKNOWN, "work": UNKNOWN}
        wait = min(total, sum(value for value in waits if value is not None))
        known = any(value is not None for value in waits)
        return {"wait": short_duration(wait) if known else UNKNOWN, "work": short_duration(total - wait)}

    def _mean(self, run: RunSeries, name: str, view: View, bins: int) -> tuple[Floats, Floats]:
        steps = _steps(run, view)
        if steps is None:
            return np.empty(0), np.empty(0)
        curves = [reduce_range(run.rank(rank), name, "step", *steps, bins)[0] for rank in self._options.ranks(run)]
        mean = mean_of(curves, bounds=False)
        return mean.x if view.axis == "step" else run.time_positions(mean.x), mean.mean


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


def mean_curve(
    run: RunSeries, options: CurveOptions, name: str, view: View, bins: int, half_width: float
) -> tuple[Curve, Curve]:
    """The mean over ranks, aligned by step whatever the axis is, and its smoothed line."""
    steps = _steps(run, view)
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
        return _by_time(run, mean), _by_time(run, line)
    return mean, line


def _by_time(run: RunSeries, curve: Curve) -> Curve:
    """A curve over steps where they have a time; a rank may have reached steps that the longest one never did."""
    x = run.time_positions(curve.x)
    there = ~np.isnan(x)
    return Curve(x[there], curve.low[there], curve.high[there], curve.mean[there], curve.width)


def _bold(series: Series, name: str, curve: Curve, first: int, half_width: float, bins: int) -> Curve:
    """The smoothed line of a curve that was drawn in at most `bins` bins, two of which are one of the line's."""
    thin, start = one_a_pixel(curve, first, bins / 2)
    line = smoothed(series, name, thin, start, half_width)
    return Curve(thin.x, line, line, line, thin.width)


def _steps(run: RunSeries, view: View) -> tuple[float, float] | None:
    return (view.low, view.high) if view.axis == "step" else run.steps_of(view.low, view.high)


def _rows(series: Series, view: View) -> int:
    first, last = series.rows_between(view.axis, view.low, view.high)
    return last - first


def _line_at(layers: Sequence[Layer], label: str, cursor: float | None) -> float | None:
    """What the smoothed line of a label shows at the crosshair, or at its end without one."""
    line = next((one for one in layers if isinstance(one, Line) and one.label == label + SMOOTHED), None)
    if line is None:
        return None
    known = np.flatnonzero(np.isfinite(line.y[: None if cursor is None else np.searchsorted(line.x, cursor, "right")]))
    return float(line.y[known[-1]]) if len(known) else None


def _value(series: Series, name: str, view: View) -> float | None:
    return series.last(name) if view.cursor is None else series.value_at(name, view.axis, view.cursor)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
