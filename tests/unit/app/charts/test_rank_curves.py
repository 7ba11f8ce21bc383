"""What the plots draw and read of a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QPalette
from pytestqt.qtbot import QtBot

from app.charts.cards import LOSS_CARD, THROUGHPUT_CARD, Card
from app.charts.run_chart import RunChart
from app.charts.step_time import StepTime
from app.plots.curve_options import CurveOptions
from app.plots.drawing import Area, Line, Points, Strokes
from app.plots.source import View
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.style.palette import rank_colour
from core.formatting import short_duration
from tests.helpers.synthetic_run import series_of

WHOLE = View("step", 1, 100)


def run_of(**columns: Any) -> RunSeries:
    """Two ranks, 100 steps; each column a number, or a function of rank and step."""
    lines = []
    for step in range(1, 101):
        for rank in range(2):
            line = {"ts": 1000.0 + step + rank / 10, "event": "step", "rank": rank, "attempt": 1, "step": step}
            values = {name: make(rank, step) if callable(make) else make for name, make in columns.items()}
            lines.append(line | values)
    return series_of(*lines)


def one(column: str) -> Card:
    return Card(column, column, steps=(column,))


def texts(readings: list[Any]) -> list[str]:
    return [f"{r.label} {r.text}".strip() for r in readings]


def test_a_stroke_and_a_line_for_each_rank_in_its_colour(qtbot: QtBot) -> None:
    run, palette = run_of(loss=lambda rank, step: rank + 1 / step), QPalette()
    layers = RunChart(LOSS_CARD, lambda: run, CurveOptions()).layers(WHOLE, 500, palette)
    assert [type(layer) for layer in layers] == [Strokes, Strokes, Line, Line]
    assert [layer.colour for layer in layers[2:]] == [rank_colour(0, palette), rank_colour(1, palette)]
    np.testing.assert_allclose(layers[1].low, 1 + 1 / np.arange(1, 101))
    assert qtbot is not None


def test_without_smoothing_what_was_reported_is_drawn_in_full_colour() -> None:
    run, palette = run_of(loss=lambda rank, step: rank + 1 / step), QPalette()
    (first, _) = RunChart(LOSS_CARD, lambda: run, CurveOptions(smoothing=0)).layers(WHOLE, 500, palette)
    assert isinstance(first, Strokes)
    assert first.colour == rank_colour(0, palette)


def test_mean_and_hidden_ranks() -> None:
    run = run_of(loss=lambda rank, step: float(2 * rank + step))
    source = RunChart(LOSS_CARD, lambda: run, CurveOptions(mean=True, smoothing=32))
    strokes, line = source.layers(WHOLE, 500, QPalette())
    assert isinstance(strokes, Strokes)
    np.testing.assert_allclose(strokes.low, np.arange(1, 101) + 1)
    assert isinstance(line, Line)
    assert texts(source.readings(WHOLE, QPalette())) == ["mean 101"]
    hidden = RunChart(LOSS_CARD, lambda: run, CurveOptions(hidden={"rank 0"}))
    assert texts(hidden.readings(WHOLE, QPalette())) == ["rank 1 102"]
    assert len(hidden.layers(WHOLE, 500, QPalette())) == 2


def test_the_mean_by_time_is_that_of_steps() -> None:
    run = run_of(loss=lambda rank, step: float(2 * rank + step))
    strokes, _ = RunChart(LOSS_CARD, lambda: run, CurveOptions(mean=True)).layers(
        View("ts", 1001, 1100), 500, QPalette()
    )
    assert isinstance(strokes, Strokes)
    known = ~np.isnan(strokes.x)
    np.testing.assert_allclose(strokes.x[known] - 1000, strokes.low[known] - 1)


def test_values_at_the_crosshair_and_the_newest() -> None:
    run = run_of(loss=lambda rank, step: rank + step / 100)
    source = RunChart(LOSS_CARD, lambda: run, CurveOptions())
    assert texts(source.readings(WHOLE, QPalette())) == ["mean 1.50", "rank 0 1.00", "rank 1 2.00"]
    assert texts(source.readings(View("step", 1, 100, cursor=50.7), QPalette())) == [
        "mean 1.00", "rank 0 0.500", "rank 1 1.50",
    ]  # fmt: skip
    assert texts(source.readings(View("ts", 1001, 1100, cursor=1020.0), QPalette())) == [
        "mean 0.695", "rank 0 0.200", "rank 1 1.19",
    ]  # fmt: skip
    assert texts(source.readings(View("step", 0, 100, cursor=0.0), QPalette())) == ["mean –", "rank 0 –", "rank 1 –"]


def test_evaluations_are_points() -> None:
    run = run_of(loss=1.0)
    evals = [{"ts": 1000.0 + s, "event": "eval", "rank": 0, "step": s, "val_loss": s / 10} for s in (25, 50, 75)]
    run.apply(parse_lines([json.dumps(line).encode() for line in evals]))
    source = RunChart(LOSS_CARD, lambda: run, CurveOptions())
    points = source.layers(WHOLE, 500, QPalette())[-1]
    assert isinstance(points, Points)
    assert points.y.tolist() == [2.5, 5.0, 7.5]
    assert texts(source.readings(View("step", 1, 100, cursor=60), QPalette()))[-1] == "eval 5.00"


def test_throughput_is_the_sum_over_ranks() -> None:
    run = run_of(tokens_per_s=156_000.0)
    source = RunChart(THROUGHPUT_CARD, lambda: run, CurveOptions())
    assert texts(source.readings(WHOLE, QPalette()))[0] == "312\u00a0k tok/s"
    samples = run_of(samples_per_s=10.0)
    assert (
        texts(RunChart(THROUGHPUT_CARD, lambda: samples, CurveOptions()).readings(WHOLE, QPalette()))[0]
        == "20.0 samples/s"
    )


def test_a_step_is_waiting_and_working() -> None:
    run = run_of(step_time_s=0.02, data_wait_s=0.004, sync_wait_s=0.002)
    source = StepTime(lambda: run, CurveOptions())
    wait, work = source.layers(WHOLE, 500, QPalette())
    assert isinstance(wait, Area)
    assert isinstance(work, Area)
    np.testing.assert_allclose(wait.high, 0.006)
    np.testing.assert_allclose(work.high, 0.02)
    assert texts(source.readings(WHOLE, QPalette())) == ["wait 6.00 ms", "work 14.0 ms"]


def test_waiting_that_is_not_known_is_a_dash() -> None:
    run = run_of(step_time_s=1.5)
    assert texts(StepTime(lambda: run, CurveOptions()).readings(WHOLE, QPalette())) == ["wait –", "work 1.50 s"]
    assert short_duration(0.0005) == "0.500 ms"


@pytest.mark.filterwarnings("error")
def test_the_mean_by_time_leaves_out_steps_that_have_none() -> None:
    """The longest rank is the clock, and it began later here than the other one."""
    lines = [
        {"ts": 1000.0 + step, "event": "step", "rank": rank, "attempt": 1, "step": step, "loss": float(step)}
        for rank, steps in ((0, range(20, 101)), (1, range(1, 41)))
        for step in steps
    ]
    run = series_of(*lines)
    layers = RunChart(LOSS_CARD, lambda: run, CurveOptions(mean=True)).layers(View("ts", 1001, 1100), 500, QPalette())
    assert [type(layer) for layer in layers] == [Strokes, Line]
    for layer in layers:
        assert layer.x.tolist() == sorted(layer.x.tolist()) and layer.x[0] == 1020.0


def test_values_that_stand_alone_are_one_curve() -> None:
    run = run_of(loss=1.0, score=lambda _rank, step: step / 10 if step % 10 == 0 else None)
    for smoothing in (20, 0):
        source = RunChart(one("score"), lambda: run, CurveOptions(smoothing))
        layers = source.layers(WHOLE, 500, QPalette())
        assert isinstance(layers[0], Strokes)
        np.testing.assert_allclose(layers[0].low, np.arange(1, 11))
        at = View("step", 1, 100, 55.5)
        assert texts(source.readings(at, QPalette(), layers)) == ["all devices 5.00"]
    smooth = RunChart(one("score"), lambda: run, CurveOptions()).layers(WHOLE, 500, QPalette())[-1]
    assert isinstance(smooth, Line)
    np.testing.assert_allclose(smooth.y, np.arange(1, 11), atol=1e-9)


def test_a_stretch_without_values_is_a_gap() -> None:
    run = run_of(score=lambda _rank, step: None if 40 < step <= 60 else 2.0)
    source = RunChart(one("score"), lambda: run, CurveOptions())
    layers = source.layers(WHOLE, 500, QPalette())
    assert isinstance(layers[0], Strokes)
    assert np.isnan(layers[0].low).sum() == 20
    assert texts(source.readings(View("step", 1, 100, 50), QPalette(), layers)) == ["all devices –"]


def test_what_all_ranks_share_is_one_line() -> None:
    run = run_of(lr=lambda _rank, step: step / 10, loss=lambda rank, step: rank + step)
    options = CurveOptions()
    source = RunChart(one("lr"), lambda: run, options)
    assert [layer.label for layer in source.layers(WHOLE, 500, QPalette())] == ["all devices"]
    assert texts(source.legend(WHOLE, QPalette())) == ["all devices 10.0"]
    assert len(RunChart(one("loss"), lambda: run, options).layers(WHOLE, 500, QPalette())) == 4
    late = [{"ts": 2000.0, "event": "step", "rank": 0, "step": 101, "lr": 3.0}]  # rank 1 will say the same soon
    run.apply(parse_lines([json.dumps(line).encode() for line in late]))
    assert texts(source.legend(WHOLE, QPalette())) == ["all devices 6.50"]
    other = [{"ts": 2000.0, "event": "step", "rank": 1, "step": 101, "lr": 4.0}]
    run.apply(parse_lines([json.dumps(line).encode() for line in other]))
    assert texts(source.legend(WHOLE, QPalette())) == ["mean 3.50", "rank 0 3.00", "rank 1 4.00"]


def test_long_columns_are_compared_by_their_bins() -> None:
    run = RunSeries()
    for rank in range(2):
        values = {"step": np.arange(1000.0), "ts": np.arange(1000.0), "lr": np.arange(1000.0)}
        run.groups[f"rank{rank}"] = Series()
        run.groups[f"rank{rank}"].append(1000, values)
    assert run.is_shared("lr", [0, 1]) and not run.is_shared("lr", [0]) and not run.is_shared("loss", [0, 1])
    run.groups["rank1"].append(1, {"step": np.array([1000.0]), "lr": np.array([7.0])})
    assert run.is_shared("lr", [0, 1]), "the other has not said it yet"
    run.groups["rank0"].append(1, {"step": np.array([1000.0]), "lr": np.array([8.0])})
    assert not run.is_shared("lr", [0, 1])
