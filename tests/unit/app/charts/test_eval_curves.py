"""Evaluations in charts: one curve for the run, or one for each device where they evaluate by themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtGui import QPalette
from pytestqt.qtbot import QtBot

from app.charts.cards import LOSS_CARD, Card
from app.charts.run_chart import RunChart
from app.plots.curve_options import CurveOptions
from app.plots.drawing import Points
from app.plots.source import View
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.style.palette import plot_colours, rank_colour
from core.machine.devices.names import RankNames
from tests.helpers.synthetic_run import series_of

WHOLE = View("step", 1, 100)
NAMES = RankNames(("cpu:0", "cpu:1"))


def run_with(evals: list[dict[str, float]]) -> RunSeries:
    lines: list[dict[str, object]] = [
        {"ts": 1000.0 + step, "event": "step", "rank": rank, "attempt": 1, "step": step, "loss": 2.0 + rank}
        for step in range(1, 101)
        for rank in range(2)
    ]
    lines += [{"ts": 1000.1 + line["step"], "event": "eval", "attempt": 1} | line for line in evals]
    return series_of(*lines)


def points_in(source: RunChart, view: View = WHOLE) -> list[Points]:
    return [layer for layer in source.layers(view, 500, QPalette()) if isinstance(layer, Points)]


@pytest.fixture
def independent() -> RunSeries:
    """Rank 1 is best at step 40."""
    losses = {(0, 20): 3.0, (1, 20): 2.5, (0, 40): 2.0, (1, 40): 1.0, (0, 60): 1.5, (1, 60): 1.25}
    return run_with([{"rank": rank, "step": step, "val_loss": loss} for (rank, step), loss in losses.items()])


def test_each_device_has_its_own_evaluations(qtbot: QtBot, independent: RunSeries) -> None:
    palette = QPalette()
    source = RunChart(LOSS_CARD, lambda: independent, CurveOptions(names=NAMES))
    first, second = points_in(source)
    assert (first.colour, second.colour) == (rank_colour(0, palette), rank_colour(1, palette))
    np.testing.assert_allclose(first.y, [3.0, 2.0, 1.5])
    np.testing.assert_allclose(second.y, [2.5, 1.0, 1.25])
    assert first.best is None and second.best == (40, 1.0)
    readings = source.readings(View("step", 1, 100, 45), palette)
    assert [(r.label, r.text, r.is_best) for r in readings if r.is_ring] == [
        ("eval CPU 0", "2.00", False),
        ("eval CPU 1", "1.00", True),
    ]
    assert qtbot is not None


def test_evaluations_of_a_device_are_hidden_alone_and_with_it(independent: RunSeries) -> None:
    options = CurveOptions(names=NAMES)
    source = RunChart(LOSS_CARD, lambda: independent, options)
    options.hide("eval 0", True)
    assert [points.label for points in points_in(source)] == ["evaluation CPU 1"]
    hidden = [reading.label for reading in source.legend(WHOLE, QPalette()) if reading.is_hidden]
    assert hidden == ["eval CPU 0"]
    options.hide("rank 1", True)
    assert points_in(source) == []


@pytest.mark.parametrize("axis", ["step", "ts"])
def test_the_mean_of_devices_is_that_of_their_evaluations(independent: RunSeries, axis: str) -> None:
    view = WHOLE if axis == "step" else View("ts", 1000, 1101)
    source = RunChart(LOSS_CARD, lambda: independent, CurveOptions(mean=True))
    (points,) = points_in(source, view)
    np.testing.assert_allclose(points.y, [2.75, 1.5, 1.375])
    assert points.colour == plot_colours(QPalette()).eval
    (reading,) = [r for r in source.readings(view, QPalette()) if r.is_ring]
    assert reading.label == "eval" and reading.text == "1.38"


def test_evaluations_of_the_whole_run_are_one_curve() -> None:
    run = run_with([{"rank": 0, "step": step, "val_loss": 1.0, "accuracy": step / 100} for step in (20, 40)])
    source = RunChart(Card("eval", "", evals="accuracy"), lambda: run, CurveOptions())
    (points,) = points_in(source)
    assert points.label == "accuracy" and points.best is None
    assert [(r.label, r.text, r.key) for r in source.readings(WHOLE, QPalette())] == [("eval", "0.400", "eval")]
    assert RunChart(Card("eval", "", evals="other"), lambda: run, CurveOptions()).readings(WHOLE, QPalette()) == []


def test_evaluations_that_a_resumed_run_repeats_go_for_every_device(independent: RunSeries) -> None:
    resumed = {"ts": 1200.0, "event": "launch", "rank": -1, "attempt": 2, "resumed_from": {"0": 30, "1": 30}}
    independent.apply(parse_lines([json.dumps(resumed).encode()]))
    assert [len(points.x) for points in points_in(RunChart(LOSS_CARD, lambda: independent, CurveOptions()))] == [1, 1]
