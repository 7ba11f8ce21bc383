"""One chart in its window: what is painted when, and what stands in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.charts.plots_panel import PlotsPanel
from app.run_data.metrics_batch import MetricsBatch
from tests.helpers.event_counts import EventCounts
from tests.helpers.synthetic_run import START_S, Shape, make_run, write_events, write_lines
from tests.unit.app.charts.conftest import Make, settle

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


def test_a_move_paints_each_chart_once(panel: PlotsPanel, qtbot: QtBot) -> None:
    panel.time_axis._leader.zoom_by_hand(0.5)
    settle(qtbot, panel)
    seen = [chart.viewport() for chart in panel.charts() if not chart.viewport().visibleRegion().isEmpty()]
    paints = [EventCounts(viewport, QEvent.Type.Paint) for viewport in seen]
    panel.time_axis._leader.move_by_hand(0.05)
    for _ in range(3):
        QApplication.processEvents()
    assert [counts.total for counts in paints] == [1] * len(seen) and len(seen) >= 3


def test_marks_stand_at_their_time_on_the_time_axis(make_panel: Make, tmp_path: Path) -> None:
    panel = make_panel(write_lines(tmp_path / "run", Shape(steps=400)))
    event = {"event": "commit", "ts": START_S + 5, "step": 100, "checkpoint": 1}
    panel._data.series.apply(MetricsBatch(events=[event]))
    panel._redraw()
    marks = panel.loss.chart.marks
    panel.set_axis("time")
    assert marks.place(marks.marks[0]) == START_S + 5
    panel.set_axis("step")
    assert marks.place(marks.marks[0]) == 100


def step(rank: int, number: int, **values: object) -> dict[str, object]:
    return {"ts": START_S + number, "event": "step", "rank": rank, "step": number} | values


def test_a_metric_without_a_value_has_no_card_until_it_has_one(tmp_path: Path, make_panel: Make, qtbot: QtBot) -> None:
    lines = [step(0, number, loss=1.0, grad_norm=None, score=None) for number in range(1, 600)]
    store = write_events(make_run(tmp_path / "made"), lines)
    panel = make_panel(store)
    assert panel.cards.shown == ["loss"]
    with store.metrics.open("ab") as file:
        file.write(json.dumps(step(0, 600, loss=1.0, score=0.5) | {"attempt": 1}).encode() + b"\n")
    qtbot.waitUntil(lambda: panel.cards.shown == ["loss", "score"])


def test_a_chart_says_that_not_all_devices_are_drawn(tmp_path: Path, make_panel: Make) -> None:
    panel = make_panel(write_events(make_run(tmp_path / "made"), (step(rank, 1, loss=1.0) for rank in range(100))))
    assert panel.loss.unit.text() == "25 of 100 devices"


def test_enter_enlarges_a_chart_and_escape_gives_its_place_back(panel: PlotsPanel, qtbot: QtBot) -> None:
    chart = panel.loss.chart
    before = chart.height()
    qtbot.keyClick(chart, Qt.Key.Key_Return)
    assert panel.loss.enlarge.isChecked() and chart.height() > before
    assert not panel.cards.frame("throughput").isVisible()
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    qtbot.keyClick(chart, Qt.Key.Key_Escape)
    assert panel.time_axis.cursor is None and panel.loss.enlarge.isChecked(), "first the crosshair goes"
    qtbot.keyClick(chart, Qt.Key.Key_Escape)
    assert not panel.loss.enlarge.isChecked() and chart.height() == before


def test_the_arrow_keys_say_where_the_crosshair_stands(panel: PlotsPanel, qtbot: QtBot) -> None:
    chart = panel.loss.chart
    assert "Enter enlarges" in chart.accessibleDescription()
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleDescription().startswith(f"step {int(panel.time_axis.cursor or 0)} · ")
    assert "rank 1 " in chart.accessibleDescription() and chart.table.isVisible()
