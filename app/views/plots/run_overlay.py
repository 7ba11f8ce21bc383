"""Curves of several runs in one chart: a colour a run, the mean over its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPalette

from app.run_data.curves import Curve, reduce_range
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.run_data.smoothing import half_width_rows
from app.views.plots.curve_options import CurveOptions
from app.views.plots.drawing import Layer, Line, Points, Strokes
from app.views.plots.rank_curves import mean_curve
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View
from app.views.style.palette import faint, rank_colour
from core.formatting import number, rate

MAX_LABEL: Final = 24
RATES: Final = {"tokens_per_s": "tok/s", "samples_per_s": "samples/s"}


@dataclass(frozen=True, slots=True)
class OverlaidRun:
    """One run.

    Attributes:
        label: Its name.
        series: What it has reported.
    """

    label: str
    series: RunSeries

    @property
    def short(self) -> str:
        """Its name with the middle left out where it is long."""
        if len(self.label) <= MAX_LABEL:
            return self.label
        half = (MAX_LABEL - 1) // 2
        return f"{self.label[:half]}…{self.label[-half:]}"


class RunOverlay:
    """One column of several runs by step: steps as a faint curve and a smoothed line, evaluations as points.

    A rate is that of all ranks together.

    Args:
        runs: In the order of their colours.
        name: The column.
        smoothing: As in `CurveOptions`.
    """

    unit = ""
    fixed_scale: Scale | None = None

    def __init__(self, runs: Sequence[OverlaidRun], name: str, smoothing: int) -> None:
        self._runs = tuple(runs)
        self._name = name
        self._options = CurveOptions(smoothing=smoothing, mean=True)
        self.floor = 0.0 if name in RATES else None

    def rows(self, view: View) -> int:
        """Those of the longest run."""
        spans = (self._series(run).rows_between(view.axis, view.low, view.high) for run in self._runs)
        return max((last - first for first, last in spans), default=0)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """All that was reported first, then every line."""
        behind: list[Layer] = []
        front: list[Layer] = []
        for place, run in enumerate(self._runs):
            colour = rank_colour(place, palette)
            if self._is_evaluated(run.series):
                curve, _ = reduce_range(run.series.evals, self._name, view.axis, view.low, view.high, bins)
                if len(curve.x):
                    middle = (curve.low + curve.high) / 2
                    # The strokes lie over the thread that joins the points, so that it has the run's colour too.
                    front += [Points(curve.x, middle, colour, run.label), Strokes(curve.x, middle, middle, colour)]
            else:
                self._add_curves(run, view, bins, colour, palette, behind, front)
        return [*behind, *front]

    def _add_curves(
        self,
        run: OverlaidRun,
        view: View,
        bins: int,
        colour: QColor,
        palette: QPalette,
        behind: list[Layer],
        front: list[Layer],
    ) -> None:
        half_width = half_width_rows(self._options.smoothing, self.rows(view), bins)
        mean, line = mean_curve(run.series, self._options, self._name, view, bins, half_width)
        factor = self._factor(run.series)
        mean, line = _times(mean, factor), _times(line, factor)
        if not len(mean.x):
            return
        raw = faint(colour, palette, 0.32 if half_width > 0 else 1.0)
        behind.append(Strokes(mean.x, mean.low, mean.high, raw, run.label))
        if half_width > 0:
            front.append(Line(line.x, line.mean, colour, label=run.label))

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """Each run's value at the crosshair, or its last; runs without the column are left out."""
        found = []
        for place, run in enumerate(self._runs):
            value = self._value(run.series, view)
            if value is not None:
                line = _line_at(layers, run.label, view.cursor)
                found.append(
                    Reading(
                        rank_colour(place, palette),
                        run.short,
                        self._text(value),
                        is_ring=self._is_evaluated(run.series),
                        smoothed="" if line is None else self._text(line),
                    )
                )
        return found

    def _value(self, run: RunSeries, view: View) -> float | None:
        series = [run.evals] if self._is_evaluated(run) else [run.rank(rank) for rank in self._options.ranks(run)]
        values = [
            one.last(self._name) if view.cursor is None else one.value_at(self._name, view.axis, view.cursor)
            for one in series
        ]
        known = [value for value in values if value is not None]
        return self._factor(run) * sum(known) / len(known) if known else None

    def _series(self, run: OverlaidRun) -> Series:
        return run.series.evals if self._is_evaluated(run.series) else run.series.clock()

    def _is_evaluated(self, run: RunSeries) -> bool:
        return self._name in run.evals.columns

    def _factor(self, run: RunSeries) -> int:
        return len(run.ranks()) if self._name in RATES else 1

    def _text(self, value: float) -> str:
        return rate(value, RATES[self._name]) if self._name in RATES else number(value)


def shared_columns(runs: Sequence[RunSeries]) -> list[str]:
    """Columns that at least two runs have, of their ranks or their evaluations."""
    counts: dict[str, int] = {}
    for run in runs:
        names = {name for rank in run.ranks()[:1] for name in run.rank(rank).columns} | set(run.evals.columns)
        for name in sorted(names):
            counts[name] = counts.get(name, 0) + 1
    return [name for name, count in counts.items() if count >= 2]


def _times(curve: Curve, factor: int) -> Curve:
    if factor == 1:
        return curve
    return replace(curve, low=curve.low * factor, high=curve.high * factor, mean=curve.mean * factor)


def _line_at(layers: Sequence[Layer], label: str, cursor: float | None) -> float | None:
    line = next((one for one in layers if isinstance(one, Line) and one.label == label), None)
    if line is None:
        return None
    end = None if cursor is None else int(np.searchsorted(line.x, cursor, "right"))
    known = np.flatnonzero(np.isfinite(line.y[:end]))
    return float(line.y[known[-1]]) if len(known) else None
