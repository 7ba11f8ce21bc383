"""Curves of several runs in one chart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtGui import QPalette

from app.charts.cards import Card
from app.compare.run_overlay import OverlaidRun, RunOverlay, reported_columns
from app.plots.curve_options import CurveOptions
from app.plots.drawing import Line, Points, Strokes
from app.plots.source import View
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.style.palette import rank_colour
from tests.helpers.synthetic_run import series_of

pytestmark = pytest.mark.windows
WHOLE = View("step", 1, 20)
START = 1.78e9


def run_of(ranks: int, steps: int, loss: float, name: str = "loss", start: float = START) -> RunSeries:
    lines = [{"ts": start, "event": "launch", "rank": -1}]
    lines += [
        {"ts": start + step, "event": "step", "rank": rank, "step": step, name: loss + rank, "tokens_per_s": 50.0}
        for step in range(1, steps + 1)
        for rank in range(ranks)
    ]
    lines.append({"ts": start + steps + 1, "event": "eval", "rank": 0, "step": steps, "val_loss": loss})
    return series_of(*lines)


RUNS = [OverlaidRun("one", run_of(1, 10, 1.0)), OverlaidRun("two", run_of(2, 20, 4.0, start=START + 5000))]


def card(name: str) -> Card:
    return Card(name, name, evals=name) if name == "val_loss" else Card(name, name, steps=(name,))


def overlay(name: str, smoothing: int = 8, runs: list[OverlaidRun] | None = None) -> RunOverlay:
    options = CurveOptions(smoothing=smoothing, mean=True)
    return RunOverlay(runs or RUNS, card(name), options)


def test_a_colour_a_run_and_the_mean_over_its_ranks() -> None:
    palette = QPalette()
    layers = overlay("loss").layers(WHOLE, 500, palette)
    assert [type(layer) for layer in layers] == [Strokes, Strokes, Line, Line]
    assert [layer.colour for layer in layers[2:]] == [rank_colour(0, palette), rank_colour(1, palette)]
    assert isinstance(layers[1], Strokes)
    np.testing.assert_allclose(layers[1].low, 4.5)
    assert overlay("loss").rows(WHOLE) == 20


def test_a_rate_is_that_of_all_ranks() -> None:
    rates = overlay("tokens_per_s", 0)
    (_, second) = rates.layers(WHOLE, 500, QPalette())
    assert isinstance(second, Strokes)
    np.testing.assert_allclose(second.high, 100.0)
    assert [reading.text for reading in rates.readings(WHOLE, QPalette())] == ["50.0 tok/s", "100 tok/s"]
    assert rates.floor == 0.0


def test_evaluations_are_points() -> None:
    evals = overlay("val_loss")
    points = [layer for layer in evals.layers(WHOLE, 500, QPalette()) if isinstance(layer, Points)]
    assert [layer.y.tolist() for layer in points] == [[1.0], [4.0]]
    assert [reading.is_ring for reading in evals.readings(WHOLE, QPalette())] == [True, True]


def test_ranks_that_evaluate_by_themselves_are_averaged() -> None:
    run = run_of(2, 4, 1.0)
    line = {"ts": START + 5, "event": "eval", "rank": 1, "step": 4, "val_loss": 3.0}
    run.apply(parse_lines([json.dumps(line).encode()]))
    both = [OverlaidRun("own", run)]
    assert [reading.text for reading in overlay("val_loss", runs=both).readings(WHOLE, QPalette())] == ["2.00"]


def test_on_the_time_axis_each_run_begins_at_its_own_start() -> None:
    view = View("ts", 0, 20, 2.0)
    shown = overlay("loss", 0)
    layers = shown.layers(view, 500, QPalette())
    assert [(layer.x[0], layer.x[-1]) for layer in layers] == [(0.0, 9.0), (0.0, 19.0)]
    assert [reading.text for reading in shown.readings(view, QPalette(), layers)] == ["1.00", "4.50"]
    late, early = View("ts", 0, 20, 14.0), View("ts", 0, 20, -0.5)
    assert [reading.text for reading in shown.readings(late, QPalette())] == ["1.00", "4.50"]
    assert shown.readings(early, QPalette()) == []
    assert [entry.text for entry in shown.legend(early, QPalette())] == ["–", "–"]
    (first, second) = [
        layer for layer in overlay("val_loss").layers(view, 500, QPalette()) if isinstance(layer, Points)
    ]
    assert (first.x.tolist(), second.x.tolist()) == ([10.0], [20.0])
    assert [run.extent("time") for run in RUNS] == [(0.0, 10.0), (0.0, 20.0)]
    assert [run.extent("step") for run in RUNS] == [(1.0, 10.0), (1.0, 20.0)]


def test_values_at_the_crosshair_name_their_runs() -> None:
    shown = overlay("loss", runs=[*RUNS, OverlaidRun("a name that is longer than a legend", run_of(1, 5, 9.0))])
    view = View("step", 1, 20, 5.0)
    readings = shown.readings(view, QPalette(), shown.layers(view, 500, QPalette()))
    assert [reading.text for reading in readings] == ["1.00", "4.50", "9.00"]
    assert readings[0].label == "one" and readings[0].smoothed == "1.00"
    assert "…" in readings[2].label and len(readings[2].label) < 25


def test_a_hidden_run_stays_in_the_legend() -> None:
    options = CurveOptions(mean=True)
    shown = RunOverlay(RUNS, card("loss"), options)
    keys = [entry.key for entry in shown.legend(WHOLE, QPalette())]
    options.choose(keys[1], True, keys)
    lines = [layer for layer in shown.layers(WHOLE, 500, QPalette()) if isinstance(layer, Line)]
    assert [line.colour for line in lines] == [rank_colour(1, QPalette())]
    assert [entry.is_hidden for entry in shown.legend(WHOLE, QPalette())] == [True, False]
    assert [entry.label for entry in shown.readings(WHOLE, QPalette())] == ["two"]


def test_a_run_without_the_column_is_left_out() -> None:
    runs = [*RUNS, OverlaidRun("other", run_of(1, 5, 1.0, "reward")), OverlaidRun("empty", RunSeries())]
    assert len(overlay("loss", 0, runs=runs).layers(WHOLE, 500, QPalette())) == 2
    assert len(overlay("loss", 0, runs=runs).legend(WHOLE, QPalette())) == 2
    steps, evals = reported_columns(runs)
    assert {"loss", "reward", "tokens_per_s"} <= steps and "val_loss" in evals
    assert runs[3].extent("step") is None and runs[3].extent("time") is None


def test_a_short_run_beside_a_very_long_one_costs_little() -> None:
    view = View("step", 1, 1e9)
    lines = [layer for layer in overlay("loss").layers(view, 500, QPalette()) if isinstance(layer, Line)]
    assert [len(line.x) for line in lines] == [10, 20]


def test_runs_meet_at_the_same_tokens_epoch_and_hour() -> None:
    def counted(tokens: float, start: float) -> OverlaidRun:
        run, steps = RunSeries(), np.arange(1.0, 41.0)
        run.groups["rank0"] = Series()
        epochs = np.floor(steps / 10)
        values = {"step": steps, "ts": start + steps, "loss": steps, "tokens_seen": tokens * steps, "epoch": epochs}
        run.groups["rank0"].append(40, values)
        return OverlaidRun("run", run)

    runs = [counted(100.0, 1000.0), counted(200.0, 1010.0)]
    shown = RunOverlay(runs, card("loss"), CurveOptions(smoothing=0, mean=True))
    assert [run.extent("tokens") for run in runs] == [(100.0, 4000.0), (200.0, 8000.0)]
    view = View("step", 100.0, 8000.0, 2000.0, "tokens")
    first, second = shown.layers(view, 500, QPalette())
    assert (first.x[-1], second.x[-1]) == (4000.0, 8000.0)
    assert [reading.text for reading in shown.readings(view, QPalette())] == ["20.0", "10.0"]
    assert [run.extent("epoch") for run in runs] == [(0.0, pytest.approx(4.0, abs=0.01))] * 2
    assert [r.text for r in shown.readings(View("step", 0.0, 4.0, 2.0, "epoch"), QPalette())] == ["20.0", "20.0"]
    clock = View("ts", 1001.0, 1050.0, 1020.0, "clock")
    assert [reading.text for reading in shown.readings(clock, QPalette())] == ["20.0", "10.0"]
    assert shown.layers(clock, 500, QPalette())[1].x[0] == 1011.0
