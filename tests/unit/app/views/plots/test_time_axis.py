"""The shared axis: follows while it is fitted, stays where a person put it."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.views.plots.time_axis import TimeAxis
from tests.unit.app.run_data.test_run_series import steps


def shown(axis: TimeAxis) -> tuple[float, float]:
    return axis.low, axis.high


def test_it_follows_while_fitted(qtbot: QtBot) -> None:
    axis = TimeAxis()
    axis.set_extent(0, 100)
    with qtbot.waitSignal(axis.range_changed) as told:
        axis.set_extent(0, 200)
    assert told.args == [False]
    assert shown(axis) == (0, 200)


def test_it_stays_where_a_person_put_it(qtbot: QtBot) -> None:
    axis = TimeAxis()
    axis.set_extent(0, 100)
    with qtbot.waitSignal(axis.range_changed) as told:
        axis.show_range(20, 40)
    assert told.args == [True]
    axis.set_extent(0, 5000)
    assert shown(axis) == (20, 40)
    axis.fit()
    assert shown(axis) == (0, 5000)
    assert axis.is_fitted


def test_zooming_keeps_the_point_under_the_pointer() -> None:
    axis = TimeAxis()
    axis.set_extent(0, 1000)
    axis.zoom(0.5, 250)
    assert shown(axis) == (125, 625)
    axis.zoom(0.5, 250)
    assert (250 - axis.low) / axis.span == pytest.approx(0.25)


def test_it_never_leaves_what_there_is() -> None:
    axis = TimeAxis()
    axis.set_extent(0, 1000)
    axis.show_range(900, 1100)
    assert shown(axis) == (800, 1000)
    axis.pan(-5)
    assert shown(axis) == (0, 200)
    axis.zoom(1e-12, 100)
    assert axis.span == 2.0
    axis.zoom(1e12, 100)
    assert axis.is_fitted


def test_steps_and_time_show_the_same_part(qtbot: QtBot) -> None:
    run = RunSeries()
    run.apply(parse_lines(steps(0, 1, 1000)))
    axis = TimeAxis()
    axis.set_extent(1, 1000)
    axis.show_range(100, 300)
    with qtbot.waitSignal(axis.axis_changed):
        axis.switch("ts", run)
    assert shown(axis) == (1050.0, 1150.0)
    axis.switch("step", run)
    assert shown(axis) == pytest.approx((100, 300))
    axis.fit()
    axis.switch("ts", run)
    assert shown(axis) == (1000.5, 1500.0)
    assert axis.is_fitted


def test_an_empty_run_can_be_switched_too() -> None:
    axis = TimeAxis()
    axis.switch("ts", RunSeries())
    assert axis.axis == "ts"
    assert axis.span > 0


def test_the_cursor_tells_of_moves_only(qtbot: QtBot) -> None:
    axis = TimeAxis()
    moves: list[float | None] = []
    axis.cursor_changed.connect(lambda: moves.append(axis.cursor))
    for value in (5.0, 5.0, 6.0, None, None):
        axis.set_cursor(value)
    assert moves == [5.0, 6.0, None]
    assert qtbot is not None
