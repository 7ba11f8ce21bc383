"""The shared axis: follows while it is fitted, stays where a person put it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from PySide6.QtGui import QFont
from pytestqt.qtbot import QtBot

from app.plots.axes import TimeTicks
from app.plots.time_axis import TimeAxis
from app.plots.view_box import PlotView
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from tests.unit.app.run_data.test_run_series import steps

pytestmark = pytest.mark.usefixtures("qapp")


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
    axis._leader.zoom_by_hand(1e-9)
    assert axis.span > 0


def test_zooming_keeps_the_point_under_the_pointer() -> None:
    axis = TimeAxis()
    axis.set_extent(0, 1000)
    axis._leader.zoom_by_hand(0.5, 250)
    assert shown(axis) == (125, 625)
    axis._leader.zoom_by_hand(0.5, 250)
    assert (250 - axis.low) / axis.span == pytest.approx(0.25)


def test_it_never_leaves_what_there_is() -> None:
    axis = TimeAxis()
    axis.set_extent(0, 1000)
    axis.show_range(900, 1100)
    assert shown(axis) == (800, 1000)
    axis._leader.move_by_hand(-5)
    assert shown(axis) == (0, 200)
    axis._leader.zoom_by_hand(1e-12, 100)
    assert axis.span == 2.0
    axis._leader.zoom_by_hand(1e12, 100)
    assert axis.is_fitted


def test_steps_and_time_show_the_same_part(qtbot: QtBot) -> None:
    run = RunSeries()
    run.apply(parse_lines(steps(0, 1, 1000)))
    axis = TimeAxis()
    axis.set_extent(1, 1000)
    axis.show_range(100, 300)
    with qtbot.waitSignal(axis.axis_changed):
        axis.switch("time", run)
    assert shown(axis) == (1050.0, 1150.0)
    axis.switch("step", run)
    assert shown(axis) == pytest.approx((100, 300))
    axis.fit()
    axis.switch("time", run)
    assert shown(axis) == (1000.5, 1500.0)
    assert axis.is_fitted


def test_an_empty_run_can_be_switched_too() -> None:
    axis = TimeAxis()
    axis.switch("time", RunSeries())
    assert axis.axis == "ts"
    assert axis.span > 0


def counted(*epochs: float, every: float = 64.0) -> RunSeries:
    run, steps = RunSeries(), np.arange(1.0, len(epochs) + 1)
    run.groups["rank0"] = Series()
    values = {"step": steps, "ts": 1000 + steps, "epoch": np.array(epochs), "tokens_seen": every * steps}
    run.groups["rank0"].append(len(epochs), values)
    return run


def test_tokens_and_epochs_are_offered_where_they_are_counted() -> None:
    assert counted(0, 0, 0, 1, 1).axes() == ["step", "time", "clock", "tokens", "epoch"]
    assert counted(0, 0, 0).axes() == ["step", "time", "clock", "tokens"], "how long the first epoch is, is not known"
    assert RunSeries().axes() == ["step", "time", "clock"]
    bare = RunSeries()
    bare.groups["rank0"] = Series()
    bare.groups["rank0"].append(2, {"step": np.array([1.0, 2.0]), "ts": np.array([1.0, 2.0])})
    assert bare.axes() == ["step", "time", "clock"]


def test_whole_epochs_rise_evenly_and_others_as_they_are() -> None:
    steps, counts = counted(*[0] * 10, *[1] * 10, *[2] * 5).counter("epoch") or ((), ())
    assert np.interp([1, 6, 11, 16, 21, 25], steps, counts).tolist() == pytest.approx([0, 0.5, 1, 1.5, 2, 2.4])
    steps, counts = counted(0.25, 0.5, 0.75).counter("epoch") or ((), ())
    assert np.interp([1, 2, 3], steps, counts).tolist() == [0.25, 0.5, 0.75]


def ticks_of(axis: TimeAxis, size: float = 600.0) -> list[tuple[float, str]]:
    drawn = TimeTicks(axis)
    drawn.setTickFont(QFont())
    low, high = axis.low, axis.high
    spacing, values = drawn.tickValues(low, high, size)[0]
    return list(zip(values, drawn.tickStrings(values, 1.0, spacing), strict=True))


def test_ticks_of_tokens_and_epochs_stand_at_their_steps() -> None:
    run, axis = counted(*[0] * 100, *[1] * 100, every=500.0), TimeAxis()
    axis.set_extent(1, 200)
    axis.switch("tokens", run)
    found = ticks_of(axis)
    assert ("40 k", 80.0) in [(text, place) for place, text in found] and axis.axis == "step"
    axis.switch("epoch", run)
    assert {text: round(place) for place, text in ticks_of(axis)}["1.0"] == 101
    axis.switch("step", run)
    assert ("100", 100.0) in [(text, place) for place, text in ticks_of(axis)]


def test_the_time_of_day_is_the_one_here() -> None:
    run, axis = counted(0, 0), TimeAxis()
    run.groups["rank0"].append(1, {"step": np.array([3.0]), "ts": np.array([1000.0 + 7200])})
    axis.switch("clock", run)
    assert axis.axis == "ts" and len(ticks_of(axis)) > 1
    for place, text in ticks_of(axis):
        here = time.localtime(place)
        assert text in (f"{here.tm_hour:02d}:{here.tm_min:02d}", f"{here.tm_mday} Jan") and here.tm_sec == 0


def test_time_begins_with_the_first_point() -> None:
    run = counted(0, 0)
    run.groups["device/host"] = Series()
    run.groups["device/host"].append(1, {"ts": np.array([900.0]), "cpu_percent": np.array([5.0])})
    assert run.extent("ts") == (1001.0, 1002.0), "ranks imported packages before"
