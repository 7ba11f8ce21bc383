"""Tab through the page of a run, press by press: the keyboard goes where the eye does."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.window.main_window import MainWindow
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
MOST_STOPS = 60


def opened(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> Rankdeck:
    """The window with a run of two devices."""
    store = write_lines(runs_dir / "past", Shape(steps=60, ranks=2))
    rankdeck = open_window()
    window = rankdeck.window
    window.resize(1500, 900)
    window.runs.run_chosen.emit(store.dir)
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up, timeout=10_000)
    qtbot.waitUntil(lambda: "device/memory" in window.plots.cards.frames, timeout=10_000)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return rankdeck


def stops(window: MainWindow, qtbot: QtBot) -> list[str]:
    """The parts of the page, each named once, as Tab reaches them from the name of the run."""
    parts = _places(window)
    window.header.title.setFocus()
    seen: list[str] = []
    for _ in range(MOST_STOPS):
        focused = QApplication.focusWidget()
        assert focused is not None
        name = next((name for name, part in parts.items() if part is focused or part.isAncestorOf(focused)), "")
        if name and name not in seen[-1:]:
            seen.append(name)
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    return seen[: seen.index(seen[0], 1)] if seen[0] in seen[1:] else seen


def _places(window: MainWindow) -> dict[str, QWidget]:
    plots = window.plots
    return {
        "header": window.header,
        "tabs": window.tabs.tabBar(),
        "controls": plots.controls,
        **{key: plots.cards.frames[key] for key in plots.cards.shown},
    }


def test_tab_follows_the_eye(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    window = opened(open_window, qtbot, runs_dir).window
    around = ["header", "tabs", "controls"]  # how it went, and what it made, stands in the header
    devices = ["device/utilisation", "device/memory"]
    assert stops(window, qtbot) == [*around, "loss", "throughput", "step_time", "lr", *devices]
    window.resize(900, 700)
    QApplication.processEvents()
    assert stops(window, qtbot) == [*around, "loss", "throughput", "step_time", "lr", *devices], "one column, scrolled"
