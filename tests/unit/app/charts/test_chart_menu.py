"""What a chart's menu does: pictures, values, its scale."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu, QMessageBox

from app.charts.chart_menu import make_menu, values
from app.charts.plots_panel import PlotsPanel
from app.plots.scale import Scale

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


def test_a_drawing_has_every_curve_as_lines(panel: PlotsPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = tmp_path / "loss.svg"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(saved), ""))
    chart = panel.loss.chart
    by_text(make_menu(chart, "Loss", panel, lambda: None))["Save drawing (SVG)…"].trigger()
    drawn = saved.read_text(encoding="utf-8")
    assert "<image" not in drawn and "<title>Loss</title>" in drawn
    found = [reading for reading in chart.readings() if not reading.is_ring]
    colours = {reading.colour.name() for reading in found if reading.colour}
    assert len(colours) == 2 and "<circle" in drawn, "two ranks, and rings of evaluations"
    strokes = {found["stroke"] for found in re.finditer(r'<g[^>]*stroke="(?P<stroke>#\w+)"[^>]*>\s*<poly', drawn)}
    assert colours <= strokes
    assert all(name in drawn for name in ("Loss<", "rank 0", "rank 1", "eval")), "as a picture has them"
    assert QSvgRenderer(QByteArray(drawn.encode())).viewBox().width() == chart.width()


@pytest.mark.parametrize("is_log", [False, True])
def test_a_value_range_is_typed(panel: PlotsPanel, monkeypatch: pytest.MonkeyPatch, is_log: bool) -> None:
    chart = panel.loss.chart
    chart.set_log(is_log)
    typed = ["1,5 2.5", "3 1", "nothing", "-1 2"]
    offered: list[str] = []
    warned: list[str] = []

    def ask(_parent: object, _title: str, _label: str, text: str) -> tuple[str, bool]:
        offered.append(text)
        return typed.pop(0), True

    monkeypatch.setattr(QInputDialog, "getText", ask)
    monkeypatch.setattr(QMessageBox, "warning", lambda _parent, _title, text: warned.append(text))
    reach = by_text(make_menu(chart, "Loss", panel, lambda: None))["Value range…"]
    reach.trigger()
    assert (chart.scale, warned) == (Scale(math.log10(1.5), math.log10(2.5), True) if is_log else Scale(1.5, 2.5), [])
    chart.refresh()
    assert chart.scale is not None and chart.scale.high == (math.log10(2.5) if is_log else 2.5), "new points keep it"
    for _ in range(3):
        reach.trigger()
    assert offered[1:] == ["1.5 2.5"] * 3 if is_log else offered[3] == "1.5 2.5"
    assert len(warned) == (3 if is_log else 2) and chart.scale.low == (math.log10(1.5) if is_log else -1)


@pytest.mark.parametrize(
    "typed", ["-1e308 1e308", "0 1e308", "0 1e-320", "1 1.0000000000000002", "0 inf", "nan 1", "5 6 7", ""]
)
def test_a_range_that_cannot_be_drawn_is_refused(
    panel: PlotsPanel, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: (typed, True))
    monkeypatch.setattr(QMessageBox, "warning", lambda _parent, title, _text: warned.append(title))
    before = panel.loss.chart.scale
    by_text(make_menu(panel.loss.chart, "Loss", panel, lambda: None))["Value range…"].trigger()
    assert warned == ["No value range"] and panel.loss.chart.scale == before


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
