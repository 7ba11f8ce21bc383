"""What a chart's menu does: pictures, values, its scale."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from app.charts.chart_menu import make_menu, values
from app.charts.plots_panel import PlotsPanel

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


def by_text(menu: QMenu) -> dict[str, QAction]:
    return {action.text().replace("&", ""): action for action in menu.actions() if action.text()}


def test_the_menu_saves_copies_and_scales(panel: PlotsPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = panel.loss.chart
    area = chart.plot_area()
    places = [tmp_path / "loss.png", tmp_path / "nowhere" / "loss.png"]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(places.pop(0)), ""))
    warned: list[str] = []
    monkeypatch.setattr(QMessageBox, "warning", lambda _parent, title, text: warned.append(f"{title}: {text}"))
    menu = make_menu(chart, "Loss", panel, lambda _: None)
    actions = by_text(menu)
    for _ in range(2):
        actions["Save picture…"].trigger()
    assert warned[0].startswith("The file was not saved: ") and "nowhere" in warned[0] and len(warned) == 1
    saved = QImage(str(tmp_path / "loss.png"))
    assert saved.width() == 2 * chart.width() and chart.plot_area() == area
    seen = {saved.pixel(x, y) for x in range(0, saved.width(), 3) for y in range(0, saved.height(), 2)}
    assert len(seen) > 20
    actions["Copy picture"].trigger()
    assert QGuiApplication.clipboard().image().size() == saved.size()
    places.append(tmp_path / "loss.csv")
    actions["Save values…"].trigger()
    actions["Copy values"].trigger()
    written = (tmp_path / "loss.csv").read_text(encoding="utf-8")
    assert QGuiApplication.clipboard().text() == written.replace(",", "\t") and "rank 1" in written
    actions["Logarithmic axis"].trigger()
    assert chart.scale is not None and chart.scale.log and panel.log_box.isChecked()
    menu.deleteLater()


@pytest.mark.parametrize("axis", ["step", "time"])
def test_a_table_has_a_column_for_each_curve(panel: PlotsPanel, axis: str) -> None:
    panel.smoothing.set_strength(0)
    panel.set_axis(axis)
    table = list(csv.DictReader(values(panel.loss.chart, ",").splitlines()))
    if axis == "step":
        assert list(table[0]) == ["step", "rank 0", "rank 1", "evaluation"] and len(table) == 400
        assert float(table[99]["rank 1"]) == pytest.approx(panel._data.series.rank(1).value_at("loss", "step", 100))
        assert [row["step"] for row in table if row["evaluation"]] == ["100", "200", "300", "400"]
    else:
        length = panel.time_axis.high - panel.time_axis.low
        assert float(table[-1]["seconds"]) == pytest.approx(length, abs=0.1)
