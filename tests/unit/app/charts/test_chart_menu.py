"""What a chart's menu does: pictures, drawings, tables, its scale."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog, QMenu
from pytestqt.qtbot import QtBot

from app.charts.chart_menu import RangeDialog, make_menu
from app.charts.plots_panel import PlotsPanel
from app.plots import chart_export
from core.errors import RankdeckError
from tests.helpers.synthetic_run import START_S

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


def by_text(menu: QMenu) -> dict[str, QAction]:
    return {action.text().replace("&", ""): action for action in menu.actions() if action.text()}


def test_a_picture_has_what_the_chart_shows(panel: PlotsPanel, tmp_path: Path) -> None:
    chart = panel.loss.chart
    area = chart.plot_area()
    chart_export.save(tmp_path / "loss.png", chart_export.picture(chart, "Loss"))
    saved = QImage(str(tmp_path / "loss.png"))
    assert saved.width() == 2 * chart.width()
    seen = {saved.pixel(x, y) for x in range(0, saved.width(), 3) for y in range(0, saved.height(), 2)}
    assert len(seen) > 20
    assert chart.plot_area() == area, "on the screen the title stands over the chart"


def test_a_drawing_is_made_of_lines(panel: PlotsPanel, tmp_path: Path) -> None:
    chart_export.save(tmp_path / "loss.svg", chart_export.drawing(panel.loss.chart, "Loss"))
    text = (tmp_path / "loss.svg").read_text(encoding="utf-8")
    assert "<polyline" in text and "<image" not in text


@pytest.mark.parametrize("axis", ["step", "time"])
def test_a_table_has_a_column_for_each_curve(panel: PlotsPanel, tmp_path: Path, axis: str) -> None:
    panel.smoothing.set_strength(0)
    panel.set_axis(axis)
    chart = panel.loss.chart
    chart_export.save(tmp_path / "loss.csv", chart_export.values(chart.layers, chart.time_axis, ","))
    with (tmp_path / "loss.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    ranks = panel._data.series
    if axis == "step":
        assert list(table[0]) == ["step", "rank 0", "rank 1", "evaluation"] and len(table) == 400
        assert float(table[99]["rank 1"]) == pytest.approx(ranks.rank(1).value_at("loss", "step", 100))
        assert [row["step"] for row in table if row["evaluation"]] == ["100", "200", "300", "400"]
    else:
        last = float(table[-1]["seconds"])
        assert last == pytest.approx(panel.time_axis.high - panel.time_axis.low, abs=0.1) and last < START_S


def test_what_cannot_be_written_says_why(panel: PlotsPanel, tmp_path: Path) -> None:
    for made in ("a,b", chart_export.picture(panel.loss.chart, "Loss")):
        with pytest.raises(RankdeckError) as told:
            chart_export.save(tmp_path / "nowhere" / "loss.out", made)
        assert told.value.title == "The file was not saved" and "nowhere" in told.value.cause


def test_the_menu_saves_copies_and_scales(panel: PlotsPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = panel.loss.chart
    chosen: list[str] = []

    def choose(_parent: object, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        chosen.append(name)
        return str(tmp_path / name), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    menu = make_menu(chart, "Loss", panel)
    actions = by_text(menu)
    for name in ("Save picture (PNG)…", "Save drawing (SVG)…", "Save values (CSV)…"):
        actions[name].trigger()
    assert chosen == ["loss.png", "loss.svg", "loss.csv"]
    assert all((tmp_path / name).stat().st_size > 500 for name in chosen)
    actions["Copy values"].trigger()
    assert QGuiApplication.clipboard().text().startswith("step\trank 0")
    actions["Logarithmic axis"].trigger()
    assert chart.scale is not None and chart.scale.log and panel.log_box.isChecked()
    menu.deleteLater()


def test_a_value_range_is_asked_for(panel: PlotsPanel, qtbot: QtBot) -> None:
    chart = panel.throughput.chart
    dialog = RangeDialog(chart)
    qtbot.addWidget(dialog)
    ok = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    dialog.low.setText("much")
    assert not ok.isEnabled() and dialog.problem.text() == "Enter two numbers, the lower one first."
    dialog.low.setText("1,000")
    assert not ok.isEnabled() and dialog.problem.text() == "Write 1000 or 1."
    dialog.low.setText("1'000")
    dialog.high.setText("500000")
    assert ok.isEnabled()
    dialog._show()
    assert chart.scale is not None and (chart.scale.low, chart.scale.high) == (1000, 500_000)
    chart.fit()
    assert chart.scale.low == 0


def test_a_card_can_have_all_the_room(panel: PlotsPanel, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.throughput.enlarge, Qt.MouseButton.LeftButton)
    assert panel.throughput.isVisible()
    assert not panel.loss.isVisible()
    qtbot.mouseClick(panel.throughput.enlarge, Qt.MouseButton.LeftButton)
    assert all(frame.isVisible() for frame in panel.frames())
