"""Curves of several runs in one chart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtGui import QPalette

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.views.plots.drawing import Line, Points, Strokes
from app.views.plots.run_overlay import OverlaidRun, RunOverlay, shared_columns
from app.views.plots.source import View
from app.views.style.palette import rank_colour

pytestmark = pytest.mark.windows
WHOLE = View("step", 1, 20)


def run_of(ranks: int, steps: int, loss: float, name: str = "loss") -> RunSeries:
    lines = [
        {"ts": 100.0 + step, "event": "step", "rank": rank, "step": step, name: loss + rank, "tokens_per_s": 50.0}
        for step in range(1, steps + 1)
        for rank in range(ranks)
    ]
    lines.append({"ts": 200.0, "event": "eval", "rank": 0, "step": steps, "val_loss": loss})
    run = RunSeries()
    run.apply(parse_lines([json.dumps(line).encode() for line in lines]))
    return run


RUNS = [OverlaidRun("one", run_of(1, 10, 1.0)), OverlaidRun("two", run_of(2, 20, 4.0))]


def test_a_colour_a_run_and_the_mean_over_its_ranks() -> None:
    palette = QPalette()
    layers = RunOverlay(RUNS, "loss", 8).layers(WHOLE, 500, palette)
    assert [type(layer) for layer in layers] == [Strokes, Strokes, Line, Line]
    assert [layer.colour for layer in layers[2:]] == [rank_colour(0, palette), rank_colour(1, palette)]
    assert isinstance(layers[1], Strokes)
    np.testing.assert_allclose(layers[1].low, 4.5)
    assert RunOverlay(RUNS, "loss", 8).rows(WHOLE) == 20


def test_a_rate_is_that_of_all_ranks() -> None:
    overlay = RunOverlay(RUNS, "tokens_per_s", 0)
    (_, second) = overlay.layers(WHOLE, 500, QPalette())
    assert isinstance(second, Strokes)
    np.testing.assert_allclose(second.high, 100.0)
    assert [reading.text for reading in overlay.readings(WHOLE, QPalette())] == ["50.0 tok/s", "100 tok/s"]
    assert overlay.floor == 0.0


def test_evaluations_are_points() -> None:
    overlay = RunOverlay(RUNS, "val_loss", 8)
    points = [layer for layer in overlay.layers(WHOLE, 500, QPalette()) if isinstance(layer, Points)]
    assert [layer.y.tolist() for layer in points] == [[1.0], [4.0]]
    assert [reading.is_ring for reading in overlay.readings(WHOLE, QPalette())] == [True, True]


def test_values_at_the_crosshair_name_their_runs() -> None:
    overlay = RunOverlay([*RUNS, OverlaidRun("a name that is longer than a legend", run_of(1, 5, 9.0))], "loss", 8)
    view = View("step", 1, 20, 5.0)
    readings = overlay.readings(view, QPalette(), overlay.layers(view, 500, QPalette()))
    assert [reading.text for reading in readings] == ["1.00", "4.50", "9.00"]
    assert readings[0].label == "one" and readings[0].smoothed == "1.00"
    assert "…" in readings[2].label and len(readings[2].label) < 25


def test_a_run_without_the_column_is_left_out() -> None:
    runs = [*RUNS, OverlaidRun("other", run_of(1, 5, 1.0, "reward"))]
    assert len(RunOverlay(runs, "loss", 0).layers(WHOLE, 500, QPalette())) == 2
    assert shared_columns([run.series for run in runs]).count("reward") == 0
    assert {"loss", "val_loss", "tokens_per_s"} <= set(shared_columns([run.series for run in runs]))
