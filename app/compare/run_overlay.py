"""Chart of several runs: one metric of each, in a colour a run, over one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from PySide6.QtGui import QPalette

from app.charts.cards import Card
from app.plots.curve_options import CurveOptions
from app.plots.source import View
from app.plots.traces import Trace, TraceChart, figure_text, rows_in
from app.run_data.pyramid import Floats
from app.run_data.run_series import COUNTERS, RunSeries
from app.run_data.series import AxisName, Series
from app.style.palette import rank_colour
from core.metrics.column_group import EVAL_GROUP
from core.metrics.metric import metric

MAX_LABEL: Final = 24
RUN_KEY: Final = "run "


@dataclass(slots=True)
class OverlaidRun:
    """One run; on the axis of time it begins at its own start."""

    label: str
    series: RunSeries

    @property
    def ranks(self) -> list[int]:
        """The drawn ranks: of very many, some."""
        return CurveOptions().offered(self.series)

    @property
    def short(self) -> str:
        """The label, with its middle left out where it is long."""
        if len(self.label) <= MAX_LABEL:
            return self.label
        half = (MAX_LABEL - 1) // 2
        return f"{self.label[:half]}…{self.label[-half:]}"

    @property
    def start(self) -> float:
        """Unix seconds of its first step or evaluation."""
        return min((low for low, _ in self._times()), default=0.0)

    def extent(self, axis: AxisName) -> tuple[float, float] | None:
        """First and last step, token or epoch, or seconds from its start; None without any."""
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

    def own_view(self, view: View) -> View:
        """Map a view to the run's own steps or Unix seconds."""
        if view.name in COUNTERS:
            counter = self.series.counter(view.name)
            if counter is None:  # it has no place on this axis
                return replace(view, low=-2.0, high=-1.0, cursor=None if view.cursor is None else -1.0)
            steps, counts = counter
            low, high = np.interp((view.low, view.high), counts, steps).tolist()
            cursor = None if view.cursor is None else float(np.interp(view.cursor, counts, steps))
            return replace(view, low=low, high=high, cursor=cursor)
        if view.axis == "step" or view.name == "clock":
            return view
        start = self.start
        cursor = None if view.cursor is None else view.cursor + start
        return replace(view, low=view.low + start, high=view.high + start, cursor=cursor)

    def shared_places(self, view: View, places: Floats) -> Floats:
        """Map places in the run's own view to the axis that all runs share."""
        if view.name not in COUNTERS:
            return places - (self.own_view(view).low - view.low)
        counter = self.series.counter(view.name)
        return places if counter is None else np.interp(places, *counter)


class RunOverlay(TraceChart):
    """One metric of several runs: steps as curves, evaluations as points.

    Args:
        runs: In the order of their colours.
        options: Smoothing, and which runs are hidden.
    """

    fed_by = ("rank", EVAL_GROUP)

    def __init__(self, runs: Sequence[OverlaidRun], card: Card, options: CurveOptions) -> None:
        super().__init__(options)
        self._runs = runs
        self.name = card.column
        self._is_eval = card.is_eval
        self._metric = metric(card.column)
        self.floor = self._metric.floor
        self.unit = "s" if self._metric.short_unit == "s" else ""

    def rows(self, view: View) -> int:
        return max((rows_in(run.series.clock(), run.own_view(view)) for run in self._runs), default=0)

    def traces(self, palette: QPalette) -> list[Trace]:
        found: list[Trace] = []
        for place, run in enumerate(self._runs):
            groups = self._groups(run)
            if groups:
                is_shared = not self._is_eval and run.series.is_shared(self.name, list(groups))
                series, colour = tuple(groups.values()), rank_colour(place, palette)
                found.append(
                    Trace(
                        run.series, series, self._metric, run.short, colour, f"{RUN_KEY}{place}",
                        figure_text(self._metric), run.label, self._is_eval, is_shared, is_sum=self._metric.is_rate,
                        stands_for=len(run.series.ranks()), place=run,
                    )
                )  # fmt: skip
        return found

    def _groups(self, run: OverlaidRun) -> dict[int, Series]:
        ranks = {rank: run.series.rank(rank) for rank in run.ranks}
        found = run.series.evaluations() if self._is_eval else ranks
        return {rank: series for rank, series in found.items() if self.name in series.columns}


def reported_columns(runs: Sequence[OverlaidRun]) -> tuple[set[str], set[str]]:
    """Columns that any run has: of ranks, and of evaluations."""
    steps = {name for run in runs for rank in run.ranks for name in run.series.rank(rank).columns}
    return steps, {name for run in runs for series in run.series.evaluations().values() for name in series.columns}
