"""Moving a view gives what drawing it anew would give, and asks for it seldom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PySide6.QtGui import QPalette

from app.charts.cards import LOSS_CARD
from app.charts.run_chart import RunChart
from app.charts.step_time import StepTime
from app.plots.curve_options import CurveOptions
from app.plots.drawing import Area, Layer, Line, Points, Strokes
from app.plots.source import PlotSource, View, WideLayers
from app.run_data.run_series import RunSeries
from app.run_data.series import Series, XAxis

ROWS = 60_000
BINS = 700
PALETTE = QPalette()


@pytest.fixture(scope="module")
def run() -> RunSeries:
    """Two ranks that report in every second step, and evaluations."""
    random, groups = np.random.default_rng(5), {}
    step = 2.0 * np.arange(ROWS)
    for rank in range(2):
        values = {
            "step": step,
            "ts": 1000.0 + 0.05 * step,
            "loss": 3.0 + random.random(ROWS),
            "step_time_s": 0.1 + 0.01 * random.random(ROWS),
            "data_wait_s": 0.01 * random.random(ROWS),
        }
        groups[f"rank{rank}"] = Series()
        groups[f"rank{rank}"].append(ROWS, values)
    groups["eval"] = Series()
    groups["eval"].append(60, {"step": step[::1000], "ts": 1000.0 + 0.05 * step[::1000], "val_loss": np.ones(60)})
    return RunSeries(groups)


class Asked:
    """A source that notes for which parts it was asked."""

    def __init__(self, source: PlotSource) -> None:
        self._source = source
        self.parts: list[tuple[float, float]] = []

    def rows(self, view: View) -> int:
        return self._source.rows(view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        self.parts.append((view.low, view.high))
        return self._source.layers(view, bins, palette)


def extent(axis: XAxis) -> tuple[float, float]:
    return (0.0, 2.0 * ROWS - 2) if axis == "step" else (1000.0, 1000.0 + 0.1 * (ROWS - 1))


def ways() -> list[View]:
    """Moved to and fro, zoomed in and out, by step and by time, to both ends of the run."""
    views = [View("step", 0.0, 2.0 * ROWS - 2)]
    for factor, shift, count in ((0.8, 0.02, 25), (1.0, 0.3, 6), (1.0, -0.05, 30), (1.3, 0.0, 12)):
        for _ in range(count):
            low, high = views[-1].low, views[-1].high
            middle, half = (low + high) / 2 + shift * (high - low), factor * (high - low) / 2
            views.append(replace(views[-1], low=middle - half, high=middle + half))
    return views


def between(layer: Layer, low: float, high: float) -> list[np.ndarray]:
    seen = (layer.x > low) & (layer.x < high)
    return [layer.x[seen], *(part[seen] for part in heights(layer))]


def heights(layer: Layer) -> tuple[np.ndarray, ...]:
    return (layer.low, layer.high) if isinstance(layer, Strokes | Area) else (layer.y,)


@pytest.mark.parametrize("axis", ["step", "ts"])
@pytest.mark.parametrize("make", [partial(RunChart, LOSS_CARD), StepTime], ids=["loss", "step time"])
def test_a_moved_view_shows_what_it_would_show_drawn_anew(
    run: RunSeries, make: Callable[..., RunChart | StepTime], axis: XAxis
) -> None:
    source = make(lambda: run, CurveOptions(smoothing=32))
    wide, compared = WideLayers(), 0
    for view in ways():
        if axis == "ts":
            view = View("ts", 1000.0 + 0.05 * view.low, 1000.0 + 0.05 * view.high)
        moved = wide.of(source, view, BINS, PALETTE, extent(axis))
        anew = source.layers(view, BINS, PALETTE)
        assert [type(layer) for layer in moved] == [type(layer) for layer in anew]
        for one, other in zip(moved, anew, strict=True):
            assert one.colour == other.colour
            # The bins at a view's edges are cut off where it is drawn anew, and whole where it was moved.
            low, high = view.low, view.high
            if not isinstance(other, Points):
                low, high = (other.x[2] + other.x[3]) / 2, (other.x[-4] + other.x[-3]) / 2
            mine, fresh = between(one, low, high), between(other, low, high)
            np.testing.assert_allclose(mine[0], fresh[0], rtol=1e-12)
            for values, expected in zip(mine[1:], fresh[1:], strict=True):
                # A smoothed line begins a little before the view's edge.
                np.testing.assert_allclose(values, expected, rtol=1e-2 if isinstance(one, Line) else 1e-9)
                compared += len(values)
    assert compared > 50_000


def test_small_moves_ask_for_nothing(run: RunSeries) -> None:
    source, wide = Asked(RunChart(LOSS_CARD, lambda: run, CurveOptions())), WideLayers()
    view = View("step", 40_000.0, 44_000.0)
    for _ in range(60):
        wide.of(source, view, BINS, PALETTE, extent("step"))
        view = replace(view, low=view.low + 40.0, high=view.high + 40.0)
    assert source.parts[0] == (40_000.0, 44_000.0), "a first picture costs what it shows"
    assert len(source.parts) == 4
    assert source.parts[1] == (39_040.0, 45_040.0)


def test_zooming_asks_only_where_bins_become_finer(run: RunSeries) -> None:
    source, wide = Asked(StepTime(lambda: run, CurveOptions())), WideLayers()
    view = View("step", 0.0, 2.0 * ROWS - 2)
    for _ in range(30):
        wide.of(source, view, BINS, PALETTE, extent("step"))
        view = replace(
            view, low=view.low + 0.05 * (view.high - view.low), high=view.high - 0.05 * (view.high - view.low)
        )
    assert len(source.parts) <= 8


def test_what_is_forgotten_is_made_anew_and_no_wider_than_it_is_shown(run: RunSeries) -> None:
    source, wide = Asked(RunChart(LOSS_CARD, lambda: run, CurveOptions())), WideLayers()
    view = View("step", 40_000.0, 44_000.0)
    for _ in range(3):
        wide.of(source, view, BINS, PALETTE, extent("step"))
        wide.forget()
    assert source.parts == [(40_000.0, 44_000.0)] * 3


def test_another_source_another_width_and_another_axis_are_not_mistaken(run: RunSeries) -> None:
    losses, times, wide = (
        RunChart(LOSS_CARD, lambda: run, CurveOptions()),
        StepTime(lambda: run, CurveOptions()),
        WideLayers(),
    )
    view = View("step", 0.0, 2.0 * ROWS - 2)
    wide.of(losses, view, BINS, PALETTE, extent("step"))
    assert all(isinstance(layer, Area) for layer in wide.of(times, view, BINS, PALETTE, extent("step")))
    fine = wide.of(times, view, 4 * BINS, PALETTE, extent("step"))
    assert len(fine[0].x) > BINS
    by_time = wide.of(times, View("ts", *extent("ts")), BINS, PALETTE, extent("ts"))
    assert by_time[0].x[0] >= 1000.0


def test_nothing_to_show_and_a_run_of_evaluations_alone(run: RunSeries) -> None:
    view, wide = View("step", 10.0, 20.0), WideLayers()
    empty, evals = RunSeries(), RunSeries({"eval": run.groups["eval"]})
    for nothing in (RunChart(LOSS_CARD, lambda: empty, CurveOptions()), StepTime(lambda: empty, CurveOptions())):
        assert wide.of(nothing, view, BINS, PALETTE, (0.0, 1.0)) == []
    source, other = RunChart(LOSS_CARD, lambda: evals, CurveOptions()), WideLayers()
    for low in (0.0, 50_000.0, 60_000.0):
        (points,) = other.of(source, View("step", low, low + 20_000.0), BINS, PALETTE, extent("step"))
        assert isinstance(points, Points)
        assert 10 <= len(points.x) <= 13
