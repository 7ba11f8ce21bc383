"""Cards as a person wants them: menus, scrolling, and what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.charts.chart_menu import make_menu
from app.charts.plots_panel import PlotsPanel
from core.run_folder.store import RunStore
from tests.helpers.settings_file import settings_in
from tests.helpers.synthetic_run import START_S, Shape, make_run, write_events, write_lines
from tests.unit.app.charts.conftest import Make, shown

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]
DEVICE_CARDS = ["device/utilisation", "device/memory"]
USUAL = ["loss", "throughput", "step_time", "lr", *DEVICE_CARDS]


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_lines(tmp_path / "run", Shape(steps=100))


def action(menu: QMenu, text: str) -> QAction:
    return next(action for action in menu.actions() if action.text().replace("&", "") == text)


def choose(panel: PlotsPanel, key: str, text: str) -> None:
    frame = panel.cards.frame(key)
    menu = make_menu(frame.chart, frame.title.text(), frame, frame.hide_chosen.emit)
    action(menu, text).trigger()
    menu.deleteLater()


def scroll_to(panel: PlotsPanel, key: str) -> None:
    panel.cards.grid.verticalScrollBar().setValue(dict(panel.cards.grid._placed())[key].y)


def test_a_card_is_hidden_by_its_menu_and_shown_again(make_panel: Make, run: RunStore) -> None:
    panel = make_panel(run)
    choose(panel, "throughput", "Hide this card")
    assert panel.cards.shown == ["loss", "step_time", "lr", *DEVICE_CARDS]
    assert not panel.cards.frame("throughput").isVisible()
    menu = panel.cards_button.fill()
    entry = action(menu, "Throughput")
    assert not entry.isChecked()
    entry.trigger()
    assert panel.cards.shown == USUAL and panel.cards.frame("throughput").isVisible()
    action(panel.cards_button.fill(), "Temperature").trigger()
    assert panel.cards.shown == [*USUAL, "device/temperature"], "chosen where it is wanted"
    action(panel.cards_button.fill(), "Show the usual cards").trigger()
    assert panel.cards.shown == USUAL


def test_hidden_cards_belong_to_a_recipe(tmp_path: Path, qtbot: QtBot, run: RunStore) -> None:
    settings = settings_in(tmp_path / "settings.ini")
    other = write_lines(tmp_path / "other", Shape(steps=20), recipe="ppo")
    for expected in (USUAL, ["loss", "throughput", "step_time", *DEVICE_CARDS]):
        panel = shown(run, settings)
        qtbot.addWidget(panel)
        assert panel.cards.shown == expected
        panel.cards.set_hidden("lr", True)
        panel._data.open(other.dir)
        qtbot.waitUntil(lambda panel=panel: panel.cards.shown == USUAL)
        panel._data.close()


def test_a_card_is_dragged_by_its_head_and_stays(tmp_path: Path, qtbot: QtBot, run: RunStore) -> None:
    settings = settings_in(tmp_path / "settings.ini")
    panel = shown(run, settings)
    qtbot.addWidget(panel)
    loss, target = panel.loss, panel.cards.frame("step_time")
    qtbot.mousePress(loss, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    qtbot.mouseMove(loss, pos=loss.mapFromGlobal(target.mapToGlobal(target.rect().center())))
    qtbot.mouseRelease(loss, Qt.MouseButton.LeftButton)
    moved = ["throughput", "step_time", "loss", *USUAL[3:]]
    assert panel.cards.shown == moved
    panel._data.close()
    again = shown(run, settings)
    qtbot.addWidget(again)
    assert again.cards.shown == moved, "remembered"
    action(again.cards_button.fill(), "Show the usual cards").trigger()
    assert again.cards.shown == USUAL
    again._data.close()


def test_a_card_is_moved_by_keys(tmp_path: Path, qtbot: QtBot, run: RunStore) -> None:
    panel = shown(run, settings_in(tmp_path / "settings.ini"))
    qtbot.addWidget(panel)
    with qtbot.waitExposed(panel):
        panel.show()
    panel.loss.chart.setFocus()
    for key, place in ((Qt.Key.Key_Left, 0), (Qt.Key.Key_Right, 1), (Qt.Key.Key_Right, 2), (Qt.Key.Key_Left, 1)):
        qtbot.keyClick(panel.loss.chart, key, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
        assert panel.cards.shown.index("loss") == place and panel.loss.chart.hasFocus()
    panel._data.close()


def test_cards_out_of_sight_are_made_when_scrolled_to_and_drawn_when_seen(
    tmp_path: Path, make_panel: Make, qtbot: QtBot
) -> None:
    values = {f"m{number:03}": float(number) for number in range(200)}
    lines = ({"ts": START_S + n, "event": "step", "rank": 0, "step": n} | values for n in range(30))
    store = write_events(make_run(tmp_path / "run"), lines)
    panel = make_panel(store)
    assert len(panel.cards.shown) == 200 and len(panel.cards.frames) < 20
    assert "m150" not in panel.cards.frames
    drawn: list[int] = []
    below = next(f for f in panel.frames() if f.visibleRegion().isEmpty() and f.isVisible())
    below.chart.redrawn.connect(lambda: drawn.append(1))
    panel.time_axis._leader.zoom_by_hand(0.5)
    QApplication.processEvents()
    assert drawn == [], "not in sight"
    scroll_to(panel, "m150")
    QApplication.processEvents()
    frame = panel.cards.frames["m150"]
    assert frame.isVisible() and not frame.visibleRegion().isEmpty()
    qtbot.waitUntil(lambda: "150" in frame.readout.accessibleName())
    first = panel.cards.frames["m000"]
    assert not first.isVisible()
    assert first.chart.view_box not in panel.time_axis._views, "it is not told of each move"
    scroll_to(panel, "m000")
    assert first.chart.view_box.viewRange()[0] == [panel.time_axis.low, panel.time_axis.high]


def place_of(panel: PlotsPanel, key: str) -> QPoint:
    readout = panel.loss.readout
    readout.grab()  # paints, and so places the entries
    return next(box.center().toPoint() for box, known in readout._boxes if known == key)


def test_a_click_on_a_legend_entry_hides_its_curve(panel: PlotsPanel, qtbot: QtBot) -> None:
    panel.resize(1200, 700)
    QApplication.processEvents()
    readout, left = panel.loss.readout, Qt.MouseButton.LeftButton
    assert readout.keys() == ["rank 0", "rank 1", "eval"]
    qtbot.mouseClick(readout, left, pos=place_of(panel, "rank 0"))
    assert panel.options.hidden == {"rank 0"} and [r.label for r in panel.loss.chart.readings()] == ["rank 1", "eval"]
    assert readout.accessibleName().startswith("rank 0 hidden; rank 1 ")
    qtbot.mouseClick(readout, left, pos=place_of(panel, "rank 0"))
    assert panel.options.hidden == set()
    alt = Qt.KeyboardModifier.AltModifier
    qtbot.mouseClick(readout, left, alt, pos=place_of(panel, "eval"))
    assert [r.label for r in panel.loss.chart.readings()] == ["eval"]
    qtbot.mouseClick(readout, left, alt, pos=place_of(panel, "eval"))
    assert [r.label for r in panel.loss.chart.readings()] == ["mean", "rank 0", "rank 1", "eval"]


def test_legend_entries_by_keyboard(panel: PlotsPanel, qtbot: QtBot) -> None:
    readout = panel.cards.frame("step_time").readout
    assert readout.focusPolicy() == Qt.FocusPolicy.TabFocus
    qtbot.keyClick(readout, Qt.Key.Key_Right)
    qtbot.keyClick(readout, Qt.Key.Key_Space)
    assert panel.options.hidden == {"work"}
    assert [layer.label for layer in panel.cards.frame("step_time").chart.layers] == ["wait s"]
    qtbot.keyClick(readout, Qt.Key.Key_Return)
    assert panel.options.hidden == {"wait"}
    assert [r.label for r in panel.cards.frame("step_time").chart.readings()] == ["work"]


def test_names_are_shortened_before_values_are_left_out(panel: PlotsPanel) -> None:
    readout = panel.loss.readout
    for width in (600, 280, 210):
        readout.resize(width, 20)
        readout.grab()
        assert len(readout._boxes) == 4, width
    readout.resize(90, 20)
    readout.grab()
    assert 0 < len(readout._boxes) < 3
