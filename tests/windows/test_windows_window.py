"""The main window on Qt's own Windows platform: opened, clicked, typed into, grabbed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.style.theme import Theme
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SAMPLED_PX = 16


def colours(picture: QPixmap) -> int:
    image = picture.toImage()
    points = [(x, y) for x in range(0, image.width(), SAMPLED_PX) for y in range(0, image.height(), SAMPLED_PX)]
    return len({image.pixel(x, y) for x, y in points})


def test_the_platform_is_the_real_one(open_window: OpenWindow) -> None:
    window = open_window().window
    if sys.platform == "win32":
        assert QGuiApplication.platformName() == "windows"
        assert int(window.winId()) > 0
    assert window.isVisible() and not window.windowIcon().isNull()


def test_opened_clicked_typed_into_and_grabbed(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    write_lines(runs_dir / "Läuf 1", Shape(steps=200))
    rankdeck = open_window()
    window = rankdeck.window
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 1, timeout=10_000)
    view = window.runs.view
    place = view.visualRect(view.model().index(0, 0)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up, timeout=10_000)
    window.actions_.new_run.setChecked(True)
    picker = window.new_run.devices
    box = picker.rows()[0].box
    qtbot.waitUntil(box.isVisible)
    before = box.isChecked()
    qtbot.mouseClick(box, Qt.MouseButton.LeftButton, pos=box.rect().center() - box.rect().center() / 2)
    assert box.isChecked() is not before
    qtbot.keyClick(box, Qt.Key.Key_Space)
    assert box.isChecked() is before
    type_into(rankdeck, "steps", "12", qtbot)
    qtbot.waitUntil(lambda: "--steps 12" in window.new_run.summary.command.text())
    qtbot.mouseClick(window.new_run.summary.copy, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "--steps 12" in QGuiApplication.clipboard().text())
    for row in range(window.tabs.count()):
        window.tabs.setCurrentIndex(row)
        QApplication.processEvents()
    qtbot.waitUntil(lambda: colours(window.grab()) > 8)


def test_light_and_dark_follow_while_it_is_open(open_window: OpenWindow, qapp: QApplication, qtbot: QtBot) -> None:
    window = open_window().window
    theme = Theme(qapp)
    before = qapp.palette()
    try:
        grounds = []
        for dark in (True, False):
            theme.set_dark(dark)
            qtbot.waitUntil(lambda dark=dark: (window.palette().window().color().lightness() < 128) is dark)
            grounds.append(window.grab().toImage().pixelColor(window.width() // 2, window.height() - 3).lightness())
        assert grounds[0] < 100 < grounds[1]
    finally:
        qapp.setPalette(before)
        theme.deleteLater()
