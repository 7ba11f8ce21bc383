"""Charts with evaluations: rings over the loss, and the other metrics that an evaluation measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import Curve, mean_of, reduce_range
from app.run_data.run_series import RunSeries
from app.run_data.series import Series, XAxis
from app.views.plots.curve_options import CurveOptions
from app.views.plots.drawing import Layer, Points
from app.views.plots.rank_curves import RankCurves, by_time, mean_of_values, rows_in, steps_in, value_of, without_pauses
from app.views.plots.source import Reading, View
from app.views.style.palette import plot_colours, rank_colour
from core.metrics.column_group import EVAL_GROUP

# The key of the evaluations; "eval 1" where each device has its own.
EVAL: Final = "eval"


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Evaluations that are one curve.

    Attributes:
        key: Names the curve.
        label: "eval", or with the device where each has its own.
        colour: The device's, or that of evaluations.
        series: A series; several where it is the mean of them.
    """

    key: str
    label: str
    colour: QColor
    series: tuple[Series, ...]


def evaluations(run: RunSeries, name: str, options: CurveOptions, palette: QPalette) -> list[Evaluations]:
    """The curves of a metric: one for all ranks, or where they evaluate by themselves, one each or their mean."""
    known = {rank: series for rank, series in run.evaluations().items() if name in series.columns}
    if len(known) < 2 or options.mean:
        shown = tuple(series for rank, series in known.items() if len(known) == 1 or rank not in options.hidden)
        return [Evaluations(EVAL, EVAL, plot_colours(palette).eval, shown)] if shown else []
    offered = set(options.offered(run)) & known.keys()
    return [
        Evaluations(f"{EVAL} {rank}", f"{EVAL} {options.names.short(rank)}", rank_colour(rank, palette), (known[rank],))
        for rank in sorted(offered)
        if rank not in options.hidden
    ]


class EvalPoints(RankCurves):
    """What an evaluation measured, besides the loss: joined points."""

    fed_by: tuple[str, ...] = (EVAL_GROUP,)

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions, name: str) -> None:
        super().__init__(run, options, (name,))
        self._metric = self._column = name

    def rows(self, view: View) -> int:
        """Evaluations of the rank that has most."""
        return max((rows_in(series, view) for series in self._run().evaluations().values()), default=0)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        return self._points(view, bins, palette, None)

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        return [reading for reading in self.legend(view, palette, layers) if not reading.is_hidden]

    def legend(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        """The same with what is hidden."""
        return self._eval_readings(view, palette, None)

    def _shown(self, palette: QPalette) -> list[Evaluations]:
        found = evaluations(self._run(), self._metric, self._options, palette)
        return [one for one in found if not self._options.is_hidden(one.key)]

    def _points(self, view: View, bins: int, palette: QPalette, best: tuple[Series, int] | None) -> list[Layer]:
        """Rings; those of the series whose best row is given with a star there."""
        run = self._run()
        layers: list[Layer] = []
        for one in self._shown(palette):
            curve = evaluation_curve(run, one.series, self._metric, view, bins)
            if len(curve.x):
                star = _place(*best, self._metric, view.axis) if best is not None and best[0] in one.series else None
                label = self._column + one.label.removeprefix(EVAL)
                points = Points(curve.x, (curve.low + curve.high) / 2, one.colour, label, star)
                layers += without_pauses(run, one.series[0], view, [points])
        return layers

    def _eval_readings(self, view: View, palette: QPalette, best: float | None) -> list[Reading]:
        readings = []
        for one in evaluations(self._run(), self._metric, self._options, palette):
            if self._options.is_hidden(one.key):
                readings.append(Reading(one.colour, one.label, "", is_ring=True, key=one.key, is_hidden=True))
            else:
                value = mean_of_values(value_of(series, self._metric, view) for series in one.series)
                is_best = best is not None and value == best
                text = self._text(value)
                readings.append(Reading(one.colour, one.label, text, is_ring=True, key=one.key, is_best=is_best))
        return readings


class LossCurves(EvalPoints):
    """The loss of each rank, and the evaluations over it, the best with a star."""

    fed_by = ("rank", EVAL_GROUP)

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(run, options, "val_loss")
        self._names, self._column = ("loss",), "evaluation"

    def rows(self, view: View) -> int:
        return rows_in(self._run().clock(), view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """The curves, and evaluations as joined points over them."""
        return [*RankCurves.layers(self, view, bins, palette), *self._points(view, bins, palette, self._best())]

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The losses, and the evaluation before the crosshair."""
        evals = [reading for reading in self._with_best(view, palette) if not reading.is_hidden]
        return [*RankCurves.readings(self, view, palette, layers), *evals]

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The same with what is hidden."""
        losses = [reading for reading in RankCurves.legend(self, view, palette, layers) if not reading.is_ring]
        return [*losses, *self._with_best(view, palette)]

    def _with_best(self, view: View, palette: QPalette) -> list[Reading]:
        best = self._best()
        value = None if best is None else float(best[0].columns[self._metric].read(best[1], best[1] + 1)[0])
        return self._eval_readings(view, palette, value)

    def _best(self) -> tuple[Series, int] | None:
        """Where the lowest loss of all was evaluated: its series and row; None before the second evaluation."""
        found: list[tuple[float, Series, int]] = []
        for series in self._run().evaluations().values():
            if self._metric not in series.columns:
                continue
            values = series.columns[self._metric].read(0, series.rows)
            if np.isfinite(values).sum() >= 2:
                row = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
                found.append((float(values[row]), series, row))
        return min(found, key=lambda one: one[0])[1:] if found else None


def evaluation_curve(run: RunSeries, series: Sequence[Series], name: str, view: View, bins: int) -> Curve:
    """What was evaluated; of several series, their mean by step."""
    if len(series) == 1:
        return reduce_range(series[0], name, view.axis, view.low, view.high, bins)[0]
    steps = steps_in(run, view) or (0.0, 0.0)
    mean = mean_of([reduce_range(one, name, "step", *steps, bins)[0] for one in series])
    return mean if view.axis == "step" else by_time(run, mean)


def _place(series: Series, row: int, name: str, axis: XAxis) -> tuple[float, float]:
    place, value = (float(series.columns[column].read(row, row + 1)[0]) for column in (axis, name))
    return place, value
