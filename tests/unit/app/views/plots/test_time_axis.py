"""The shared axis: follows while it is fitted, stays where a person put it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.views.plots.time_axis import TimeAxis
from app.views.plots.view_box import PlotView
from tests.unit.app.run_data.test_run_series import steps


@pytest.fixture(autouse=True)
def application(qapp: QApplication) -> QApplication:
    return qapp


def shown(axis: TimeAxis) -> tuple[float, float]:
    return axis.low, axis.high


def test_it_follows_while_fitted(qtbot: QtBot) -> None:
    axis, view = TimeAxis(), PlotView()
    axis.link(view)
    axis.set_extent(0, 100)
    with qtbot.waitSignal(view.sigXRangeChanged):
        axis.set_extent(0, 200)
    assert shown(axis) == (0, 200) and view.viewRange()[0] == [0, 200]


def test_it_stays_where_a_person_put_it() -> None:
    axis = TimeAxis()
    axis.set_extent(0, 100)
    axis.show_range(20, 40)
    axis.set_extent(0, 5000)
    assert shown(axis) == (20, 40)
    axis.fit()
    assert shown(axis) == (0, 5000)
    assert axis.is_fitted


def test_every_plot_shows_what_is_chosen_in_one() -> None:
    axis, views = TimeAxis(), [PlotView(), PlotView()]
    for view in views:
        axis.link(view)
    axis.set_extent(0, 1000)
    views[1].zoom_by_hand(0.5, 250)
    assert shown(axis) == (125, 625) and not axis.is_fitted
    assert views[0].viewRange()[0] == [125, 625]
    axis.unlink(views[1])
    views[0].move_by_hand(0.1)
    assert shown(axis) == (175, 675) and views[1].viewRange()[0] == [125, 625]


def test_steps_that_a_float_cannot_tell_apart_have_a_range() -> None:
    axis = TimeAxis()
    axis.set_extent(1e18, 1e18)
    assert axis.low == 1e18 and axis.span > 0
    axis.set_extent(1e18, 1e18 + 1000)
    axis.zoom(1e-9)
    assert axis.span > 0


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
