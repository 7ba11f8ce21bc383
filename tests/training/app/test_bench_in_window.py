"""The benchmark page with real ranks: opened from the menu, started, a table that grows, Stop, and the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.bench.bench_controller import FOLDER
from app.bench.bench_page import BenchPage
from app.main import Rankdeck
from core.measure.bench.folder import RESULTS
from tests.helpers.children import children_with
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, type_into

pytestmark = [OFFSCREEN_NOISE, pytest.mark.slow, pytest.mark.timeout(400)]
FOUND_MS = 240_000
SOON_MS = 30_000
SMALL = (("n_layer", "1"), ("n_embd", "32"), ("seq_len", "32"), ("batch_size", "2"))


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path_factory.mktemp("home")))


def opened(open_sheet: OpenWindow, qtbot: QtBot) -> tuple[Rankdeck, BenchPage]:
    """A small model on two CPU devices, and the page."""
    rankdeck = open_sheet()
    rankdeck.window.new_run.change_settings({"devices": ["cpu:0", "cpu:1"], "mode": "ddp"})
    for name, text in SMALL:
        type_into(rankdeck, name, text, qtbot)
    rankdeck.window.actions_.new_run.setChecked(False)
    rankdeck.window.actions_.bench.trigger()
    page = rankdeck.benching.page
    assert page is not None and rankdeck.window.pages.currentWidget() is page
    qtbot.waitUntil(lambda: "on 1 and 2 devices" in page.about.text() and page.start.isEnabled(), timeout=SOON_MS)
    rankdeck.benching.turns, rankdeck.benching.seconds = 2, 0.2
    return rankdeck, page


def ranks_alive() -> bool:
    return bool(children_with("workers.programs.measure_main"))


def test_start_fills_table_chart_and_folder(
    open_sheet: OpenWindow, qtbot: QtBot, runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankdeck, page = opened(open_sheet, qtbot)
    assert any(entry.title == "Benchmark" for entry in rankdeck.palette.entries())
    assert not page.folder.isVisible()
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    assert page.is_going and page.stop.isVisible() and not page.start.isVisible() and not page.kinds.isEnabled()
    qtbot.waitUntil(lambda: page.table.topLevelItemCount() == 2, timeout=FOUND_MS)
    assert page.is_going and page.bar.value() > 0
    qtbot.waitUntil(lambda: not page.is_going, timeout=FOUND_MS)
    assert not ranks_alive()
    item = page.table.topLevelItem(1)
    assert item is not None and item.text(0) == "2" and "%" in item.text(8)
    assert "the target of 90 % is" in page.text.text()
    assert page.chart.isVisible() and page.chart.chart is not None and page.chart.chart.target == 90
    (made,) = (runs_dir / FOLDER).iterdir()
    assert {RESULTS, "weak-efficiency.png", "weak-efficiency.svg"} <= {path.name for path in made.iterdir()}
    shown: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: bool(shown.append(QUrl(url).toLocalFile())) or True)
    qtbot.mouseClick(page.folder, Qt.MouseButton.LeftButton)
    assert [Path(path) for path in shown] == [made]
    qtbot.mouseClick(page.close_button, Qt.MouseButton.LeftButton)
    assert rankdeck.window.pages.currentWidget() is rankdeck.window.welcome


def test_stop_keeps_what_was_measured_and_a_closed_window_leaves_no_process(
    open_sheet: OpenWindow, qtbot: QtBot
) -> None:
    rankdeck, page = opened(open_sheet, qtbot)
    rankdeck.benching.turns = 500
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.table.topLevelItemCount() == 2, timeout=FOUND_MS)
    qtbot.mouseClick(page.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not page.is_going, timeout=FOUND_MS)
    assert "Stopped early" in page.text.text() and page.folder.isVisible() and not ranks_alive()
    qtbot.mouseClick(page.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(ranks_alive, timeout=SOON_MS)
    rankdeck.close()
    qtbot.waitUntil(lambda: not ranks_alive(), timeout=SOON_MS)


def test_what_cannot_be_measured_says_why(open_sheet: OpenWindow, qtbot: QtBot) -> None:
    rankdeck, page = opened(open_sheet, qtbot)
    rankdeck.window.new_run.change_settings({"devices": ["cpu:0"]})
    qtbot.waitUntil(lambda: not page.start.isEnabled(), timeout=SOON_MS)
    assert page.about.text().endswith("Choose at least two devices.") and "--" not in page.about.text()
    page.kinds.setCurrentIndex(page.kinds.findData("memory"))
    qtbot.waitUntil(page.start.isEnabled, timeout=SOON_MS)
