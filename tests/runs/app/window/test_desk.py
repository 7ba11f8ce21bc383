"""Where things stand: pages, the sheet of New run, sizes from 900 × 560 on, and the keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QInputDialog, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.run_data.run_series import ChangeSet
from app.window.desk import WIDE
from app.window.main_window import MainWindow
from app.window.window_place import MIN_SIZE
from core.run_folder.notes import read_notes
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def opened(open_window: OpenWindow, qtbot: QtBot, run_dir: Path) -> Rankdeck:
    """The window with a run that is read to its end."""
    rankdeck = open_window()
    rankdeck.window.runs.run_chosen.emit(run_dir)
    qtbot.waitUntil(lambda: rankdeck.data.is_caught_up, timeout=10_000)
    return rankdeck


def activate(window: MainWindow, qtbot: QtBot) -> None:
    """Keys reach only the active window's shortcuts."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)


def outside(window: MainWindow) -> list[str]:
    """Buttons that are shown and reach over the window's edge."""
    found = []
    for button in [*window.findChildren(QPushButton), *window.findChildren(QToolButton)]:
        if button.isVisible() and not button.visibleRegion().isEmpty():
            left = button.mapTo(window, QPoint(0, 0)).x()
            if left < 0 or left + button.width() > window.width():
                found.append(f"{button.text()} {button.accessibleName()}")
    return found


def test_the_window_fits_a_small_screen_at_200_percent(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    error = {"title": "GPU 1 ran out of memory", "cause": "It needed 3 GB", "next_step": "Halve the micro-batch."}
    store = write_lines(runs_dir / "sad", Shape(steps=60), state="failed", error=error, checkpoint=1)
    rankdeck = opened(open_window, qtbot, store.dir)
    window = rankdeck.window
    hint = window.minimumSizeHint()
    assert MIN_SIZE == (900, 450) and hint.width() <= 900 and hint.height() <= 450
    window.resize(*MIN_SIZE)
    qtbot.waitUntil(lambda: window.outcome.title != "")
    QApplication.processEvents()
    assert outside(window) == []
    window.actions_.new_run.setChecked(True)
    QApplication.processEvents()
    assert outside(window) == []
    window.show_run(None)
    QApplication.processEvents()
    assert outside(window) == []


def test_the_sheet_is_a_panel_in_a_wide_window_and_lies_over_a_narrow_one(open_window: OpenWindow) -> None:
    window = open_window().window
    desk = window.desk
    for width in (WIDE, 2400):
        window.resize(width, 800)
        window.actions_.new_run.setChecked(True)
        QApplication.processEvents()
        assert desk.frame.isVisible() and not desk.shade.isVisible()
        assert window.pages.mapTo(desk, QPoint(window.pages.width(), 0)).x() <= desk.frame.x()
    window.resize(WIDE - 1, 700)
    QApplication.processEvents()
    assert desk.shade.isVisible() and desk.frame.geometry().right() == desk.rect().right()
    assert window.pages.mapTo(desk, QPoint(window.pages.width(), 0)).x() > desk.frame.x(), "it covers the page"


def ways_to_close(window: MainWindow, qtbot: QtBot) -> dict[str, Callable[[], object]]:
    sheet = window.new_run
    return {
        "Esc": lambda: qtbot.keyClick(sheet.data.line, Qt.Key.Key_Escape),
        "close": lambda: sheet.close_requested.emit(),
        "shade": lambda: qtbot.mouseClick(window.desk.shade, Qt.MouseButton.LeftButton, pos=QPoint(5, 5)),
        "key": lambda: qtbot.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier),
    }


@pytest.mark.parametrize("way", ["Esc", "close", "shade", "key"])
def test_the_sheet_closes_and_keeps_its_draft(open_window: OpenWindow, qtbot: QtBot, way: str) -> None:
    window = open_window().window
    window.resize(1000, 700)
    activate(window, qtbot)
    window.actions_.new_run.setChecked(True)
    assert window.new_run.isAncestorOf(window.focusWidget()), "the keyboard is where the person looks"
    window.new_run.form.rows["steps"].set_text("77")
    window.new_run.data.line.setFocus()
    ways_to_close(window, qtbot)[way]()
    assert not window.desk.is_open and not window.actions_.new_run.isChecked()
    assert window.new_run.form.rows["steps"].text() == "77"


def test_start_has_its_key_only_while_its_settings_are_in_sight(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    window, started = rankdeck.window, []
    window.actions_.start.triggered.disconnect()
    window.actions_.start.triggered.connect(lambda: started.append(1))
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=10_000)
    activate(window, qtbot)
    qtbot.keyClick(window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert started == []
    window.actions_.new_run.setChecked(True)
    qtbot.keyClick(window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert started == [1]


def test_the_filter_of_runs_is_found_from_anywhere_but_a_search_of_its_own(
    open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    store = write_lines(runs_dir / "past", Shape(steps=20))
    window = opened(open_window, qtbot, store.dir).window
    activate(window, qtbot)
    control = Qt.KeyboardModifier.ControlModifier
    window.header.more.setFocus()
    qtbot.keyClick(window.header.more, Qt.Key.Key_F, control)
    assert window.focusWidget() is window.runs.filter
    window.tabs.show_log()
    window.tabs.log.source.setFocus()
    qtbot.keyClick(window.tabs.log.source, Qt.Key.Key_F, control)
    assert window.focusWidget() is window.tabs.log.search


def test_charts_come_first_and_their_controls_have_room(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    store = write_lines(runs_dir / "past", Shape(steps=50))
    window = opened(open_window, qtbot, store.dir).window
    tabs = window.tabs
    assert [tabs.tabText(n).replace("&", "") for n in range(tabs.count())][:2] == ["Charts", "Samples"]
    assert tabs.currentIndex() == 0
    qtbot.waitUntil(lambda: window.plots.isVisible())
    assert window.plots.controls.isVisible()
    tabs.setCurrentWidget(tabs.samples)
    assert not window.plots.controls.isVisible(), "they mean nothing to samples"


def test_a_run_is_renamed_in_its_header(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    store = write_lines(runs_dir / "past", Shape(steps=20))
    window = opened(open_window, qtbot, store.dir).window
    window.actions_.rename.trigger()
    dialog = window.findChildren(QInputDialog)[-1]
    dialog.setTextValue("the good one")
    dialog.accept()
    qtbot.waitUntil(lambda: window.header.title.full_text == "the good one", timeout=10_000)
    assert read_notes(store.dir).name == "the good one"
    assert "the good one" in window.windowTitle()


def test_a_finished_run_says_what_it_made_and_offers_more(
    open_window: OpenWindow, qtbot: QtBot, runs_dir: Path
) -> None:
    store = write_lines(runs_dir / "done", Shape(steps=200), checkpoint=2)
    store.model.write_bytes(b"0" * 3_400_000)
    rankdeck = opened(open_window, qtbot, store.dir)
    window = rankdeck.window
    line = window.outcome.line
    qtbot.waitUntil(lambda: line.title.full_text.startswith("Finished in "), timeout=10_000)
    qtbot.waitUntil(lambda: not window.header.bar.isVisible())
    assert "Best validation loss 1.60 at step 200." in line.title.full_text
    qtbot.waitUntil(lambda: "model.safetensors, 3.4 MB" in line.model.full_text, timeout=10_000)
    assert window.header.resume.text() == "Train furth&er…" and window.outcome.isHidden(), (
        "no button stands there twice"
    )
    line.copy_path.click()
    assert QGuiApplication.clipboard().text() == str(store.model) and window.notice.title == "Path copied"


def test_figures_show_within_a_blink_and_no_more_often(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    store = write_lines(runs_dir / "past", Shape(steps=300), created=time.time())
    rankdeck = opened(open_window, qtbot, store.dir)
    heroes, shown = rankdeck.window.header.heroes, []
    qtbot.waitUntil(lambda: bool(heroes.tiles) and heroes.tiles[0].figure.value != "–", timeout=10_000)
    labels = [tile.figure.label for tile in heroes.tiles]
    assert labels == ["Loss", "Validation loss", "Throughput", "Memory", "Checkpoint"]
    rankdeck.window.header.show_figures = lambda figures: shown.append(figures)  # type: ignore[method-assign]
    for _ in range(20):
        rankdeck.data.changed.emit(ChangeSet())
    qtbot.waitUntil(lambda: bool(shown))
    assert len(shown) == 1
