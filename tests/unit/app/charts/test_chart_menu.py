"""What a chart's menu does: pictures, its scale."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from app.charts.chart_menu import make_menu
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
    assert warned[0].startswith("The picture was not saved: ") and "nowhere" in warned[0] and len(warned) == 1
    saved = QImage(str(tmp_path / "loss.png"))
    assert saved.width() == 2 * chart.width() and chart.plot_area() == area
    seen = {saved.pixel(x, y) for x in range(0, saved.width(), 3) for y in range(0, saved.height(), 2)}
    assert len(seen) > 20
    actions["Copy picture"].trigger()
    assert QGuiApplication.clipboard().image().size() == saved.size()
    actions["Logarithmic axis"].trigger()
    assert chart.scale is not None and chart.scale.log and panel.log_box.isChecked()
    menu.deleteLater()
