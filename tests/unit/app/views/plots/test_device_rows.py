"""The card of devices: a row for each, whatever room there is; figures, warnings, gestures, values."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QPalette, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.views.plots.chart_menu import make_device_menu
from app.views.plots.device_curves import DeviceCurves, DeviceOptions
from app.views.plots.device_rows import DeviceRows
from app.views.plots.source import View
from app.views.plots.time_axis import TimeAxis
from core.machine.devices import POWER_CAP, DeviceSample
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
HOT = "hot: the driver lowers the clock"
Make = Callable[..., DeviceRows]


def uuid(number: int, kind: str) -> str:
    return f"{kind}{number}"


def run_of(count: int, kind: str = "GPU-") -> RunSeries:
    """Steps 1 to 100 in 100 s; each device is sampled every second: 90 % busy, 6 of 24 GiB, 61 °C, 150 W."""
    lines = [
        {"ts": 1000.0 + step, "event": "step", "rank": rank, "step": step, "loss": 1.0}
        for step in range(1, 101)
        for rank in range(count)
    ]
    for second in range(101):
        for number in range(count):
            figures = {"utilization_percent": 90.0 if second else 0.0, "memory_used_bytes": 6 * 2**30}
            more = {"temperature_celsius": 61, "power_w": 150, "power_limit_w": 300} if kind == "GPU-" else {}
            fixed = {"event": "device", "rank": -1, "ts": 1000.0 + second, "uuid": uuid(number, kind)}
            lines.append(fixed | figures | more | {"memory_total_bytes": 24 * 2**30})
    run = RunSeries()
    run.apply(parse_lines([json.dumps(line).encode() for line in sorted(lines, key=lambda line: line["ts"])]))
    return run


@pytest.fixture
def make(qtbot: QtBot) -> Make:
    def build(count: int, width: int = 800, height: int = 240, kind: str = "GPU-", is_over: bool = False) -> DeviceRows:
        run, axis = run_of(count, kind), TimeAxis()
        card = DeviceRows(lambda: run, axis)
        axis.setParent(card)
        qtbot.addWidget(card)
        card.set_names({uuid(n, "GPU-"): f"GPU {n} · H100 80GB HBM3" for n in range(count)})
        axis.set_extent(1, 100)
        card.options.is_over = is_over
        card.resize(width, height)
        card.show()
        card.show_devices(tuple(uuid(number, kind) for number in range(count)))
        QApplication.processEvents()
        return card

    return build


@pytest.mark.parametrize(("count", "width"), [(1, 400), (2, 400), (8, 400), (1, 1200), (2, 1200), (8, 1200), (3, 300)])
def test_all_rows_are_in_sight_in_the_least_room(make: Make, count: int, width: int) -> None:
    card = make(count, width)
    card.resize(width, card.needed_height(width))
    QApplication.processEvents()
    assert card.scroll_bar.maximum() == 0
    for row in card.rows:
        assert row.title.text().startswith("GPU ") and row.strip.height() >= 8 and row.strip.width() >= 40
        assert row.figures.width() >= row.figures.sizeHint().width()
        for part in (row.title, row.strip, row.figures):
            assert row.rect().contains(part.geometry()), "nothing is clipped"
        assert not row.strip.geometry().intersects(row.figures.geometry())
        assert not row.strip.geometry().intersects(row.title.geometry())


def test_rows_scroll_only_where_not_even_one_line_each_fits(make: Make) -> None:
    card = make(8, 400, 120)
    assert card.scroll_bar.maximum() > 0 and all(row.strip.height() >= 8 for row in card.rows)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_strips_fill_a_tall_card(make: Make, count: int) -> None:
    card = make(count, 1600, 600)
    last = card.rows[-1]
    assert last.mapTo(card, last.strip.geometry().bottomLeft()).y() > 600 - 24, "nothing stays blank below"


def test_with_room_the_strip_stands_below_the_whole_name(make: Make) -> None:
    card = make(2)
    first, second = card.rows
    assert first.title.text() == "GPU 0 · H100 80GB HBM3"
    assert first.strip.y() > first.title.geometry().bottom() and first.strip.width() == first.width()
    assert second.figures.x() == first.figures.x(), "figures stand below each other"
    assert first.text.split("\N{NO-BREAK SPACE}" * 3) == ["90 %", "6.0 / 24 GiB", "61 °C", "150 W"]


def test_of_a_run_that_is_over_means_and_peaks_are_shown(make: Make) -> None:
    card = make(2, is_over=True)
    assert card.rows[0].text.split("\N{NO-BREAK SPACE}" * 3) == [
        "mean 89 %",
        "peak 6.0 / 24 GiB",
        "peak 61 °C",
        "mean 150 W",
    ]
    assert "mean % and W, highest GiB and °C" in card._what.text()
    card.rows[0].strip.time_axis.set_cursor(50.0)
    assert card.rows[0].text.startswith("90 %") and "mean" not in card._what.text(), "at the crosshair, what was there"


def test_a_cpu_device_says_whose_figures_it_shows(make: Make) -> None:
    card = make(2, kind="cpu:")
    assert card.rows[0].whose.text() == "this run's process" and card.rows[0].whose.isVisible()
    assert card.rows[0].text.split("\N{NO-BREAK SPACE}" * 3) == ["90 %", "6.0 GiB"], "of a process, without a total"


def test_a_device_that_is_held_down_says_why(make: Make) -> None:
    card = make(2)
    hot = DeviceSample("GPU-1", 1.0, throttle_reasons=(HOT, POWER_CAP))
    card.show_samples([DeviceSample("GPU-0", 1.0, throttle_reasons=(POWER_CAP,)), hot])
    first, second = card.rows
    assert first.warning.text() == "" and second.warning.text() == "Hot: the driver lowers the clock."
    assert "⚠" in second.figures.text() and second.warning.isVisible()
    assert "Hot" in second.strip.accessibleDescription()
    for second_s in range(12):
        card.show_samples([DeviceSample("GPU-1", 2.0 + second_s)])
    assert second.warning.text() == "" and "⚠" not in second.figures.text()
    card.show_samples([hot])
    card.options.is_over = True
    card.show_samples([hot])
    assert second.warning.text() == "", "what a card does now is not the run's any more"


def test_a_device_that_waits_for_another_says_so_unless_it_is_itself_held_down(make: Make) -> None:
    card = make(2)
    card.show_waits({"GPU-0": "Waits 38 % of each step for GPU 1."})
    first, second = card.rows
    assert first.warning.text() == "Waits 38 % of each step for GPU 1." and second.warning.text() == ""
    assert "⚠" in first.figures.text() and first.figures.text().count("color:") == 1, "it is not its temperature"
    assert "Waits" in first.strip.accessibleDescription()
    card.show_samples([DeviceSample("GPU-0", 1.0, throttle_reasons=(HOT,))])
    assert first.warning.text() == "Hot: the driver lowers the clock."
    for second_s in range(12):
        card.show_samples([DeviceSample("GPU-0", 2.0 + second_s)])
    assert first.warning.text() == "Waits 38 % of each step for GPU 1."
    card.show_waits({})
    assert first.warning.text() == ""
    card.show_waits({"GPU-0": "Waits."})
    card.options.is_over = True
    card.show_samples([DeviceSample("GPU-0", 20.0)])
    card.show_waits({"GPU-0": "Waits."})
    assert first.warning.text() == "", "a run that is over waits for nothing"


def test_a_strip_zooms_and_moves_the_time_of_all_plots(make: Make) -> None:
    card = make(2)
    strip = card.rows[0].strip
    axis, middle = strip.time_axis, strip.height() // 2
    QTest.mouseMove(strip, QPoint(strip.width() // 2, middle))
    QApplication.processEvents()
    QTest.mousePress(strip, Qt.MouseButton.LeftButton, pos=QPoint(100, middle))
    QTest.mouseMove(strip, QPoint(300, middle))
    QApplication.processEvents()
    first, last = strip.value_at(100), strip.value_at(300)
    QTest.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=QPoint(300, middle))
    assert (axis.low, axis.high) == pytest.approx((first, last), abs=1) and not axis.is_fitted
    span = axis.span
    turn(strip, 120)
    assert axis.span < span
    low = axis.low
    turn(strip, 120, Qt.KeyboardModifier.ShiftModifier)
    assert axis.low < low
    QTest.mouseDClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(50, middle))
    assert axis.is_fitted


def turn(strip: object, angle: int, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    place = QPointF(200, 5)
    nothing = Qt.MouseButton.NoButton
    event = QWheelEvent(place, place, QPoint(), QPoint(0, angle), nothing, keys, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(strip, event)


def test_the_menu_draws_quantities_and_gives_values(make: Make) -> None:
    card = make(2)
    strips = dict(zip(("A", "B"), card.charts(), strict=True))
    menu = make_device_menu(card, card.options, card.set_drawn, strips)
    actions = {action.text().replace("&", ""): action for action in menu.actions()}
    assert actions["Utilisation"].isChecked() and not actions["Memory"].isChecked()
    before = card.rows[0].strip.grab().toImage()
    actions["Memory"].trigger()
    assert card.options.shown == {"utilisation", "memory"} and "line: memory" in card._what.text()
    assert card.rows[0].strip.grab().toImage() != before
    card.rows[1].strip.grab()
    actions["Copy values"].trigger()
    head, first, *_ = QGuiApplication.clipboard().text().splitlines()
    assert head.split("\t") == ["step", "A utilisation", "A memory", "B utilisation", "B memory"]
    assert first.split("\t")[1:] == ["90", "25", "90", "25"]


def test_the_crosshair_costs_no_new_picture(make: Make) -> None:
    card = make(1)
    strip = card.rows[0].strip
    strip.grab()
    kept = strip._kept
    strip.time_axis.set_cursor(20.0)
    strip.grab()
    assert strip._kept is kept
    strip.refresh()
    strip.grab()
    assert strip._kept is not kept


def test_windows_says_how_busy_the_rank_itself_keeps_its_card() -> None:
    run = run_of(1)
    line = {"ts": 1101.0, "event": "device", "rank": -1, "uuid": "GPU-0", "utilization_percent": 97.0}
    run.apply(parse_lines([json.dumps({**line, "rank_busy_percent": 81.5}).encode()]))
    curves = DeviceCurves(lambda: run, DeviceOptions(), "GPU-0", 0)

    def said(at: float) -> list[str]:
        return [reading.text for reading in curves.readings(View("ts", 1000.0, 1102.0, at), QPalette())]

    assert said(1101.0)[:2] == ["97 %", "rank 82 %"]
    assert said(1050.0)[0] == "90 %" and not any("rank" in text for text in said(1050.0))
