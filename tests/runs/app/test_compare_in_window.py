"""Comparing runs from the window: chosen in the list, read in the background, followed while one of them is running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.compare.compare_page import ComparePage
from app.main import Rankdeck
from core.processes import identity
from core.run_folder.notes import RunNotes, write_notes
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 20_000


def opened(rankdeck: Rankdeck, folders: list[Path], qtbot: QtBot) -> ComparePage:
    rankdeck.comparing.compare(folders)
    page = rankdeck.comparing.page
    assert page is not None
    qtbot.waitUntil(lambda: bool(page.runs), timeout=SOON_MS)
    return page


def test_chosen_runs_are_compared_and_closed_again(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    for name in ("first", "second"):
        write_lines(runs_dir / name, Shape(steps=40, eval_every=20))
    rankdeck = open_window()
    window = rankdeck.window
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 2, timeout=SOON_MS)
    window.actions_.compare.trigger()
    assert rankdeck.comparing.page is None and "Choose 2 to 8 runs in the list" in window.notice.text
    window.notice.clear()
    window.runs.view.selectAll()
    window.actions_.compare.trigger()
    page = rankdeck.comparing.page
    assert page is not None and page.isVisible()
    qtbot.waitUntil(lambda: len(page.runs) == 2, timeout=SOON_MS)
    assert sorted(page.table.comparison.labels) == ["first", "second"]
    qtbot.waitUntil(lambda: all(chart.layers for chart in page.charts()[:2]), timeout=SOON_MS)
    assert page.notes.text() == "" and window.notice.title == ""
    assert window.pages.currentWidget() is page
    qtbot.keyClick(page, Qt.Key.Key_Escape)
    assert window.pages.currentWidget() is not page
    assert rankdeck.comparing.page is None
    qtbot.waitUntil(lambda: window.findChild(ComparePage) is None, timeout=SOON_MS)


def test_a_running_one_is_followed(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    live = write_lines(runs_dir / "live", Shape(steps=40))
    done = write_lines(runs_dir / "done", Shape(steps=20))
    live.write_state(live.stored_state().replace(state="training", loss=1.0, host=identity.own()))
    rankdeck = open_window()
    page = opened(rankdeck, [live.dir, done.dir], qtbot)
    assert page.runs[0].series.rank(0).rows == 40
    with live.metrics.open("ab") as file:
        line = {"event": "step", "ts": 1.9e9, "rank": 0, "attempt": 1, "step": 41, "loss": 0.5}
        file.write(json.dumps(line).encode() + b"\n")
    write_notes(live.dir, RunNotes(name="renamed"))
    qtbot.waitUntil(lambda: page.runs[0].series.rank(0).rows == 41, timeout=SOON_MS)
    assert page.runs[0].label == "renamed"
    assert page.time_axis.extent == (1.0, 41.0)


def test_choosing_a_run_leaves_the_comparison(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    stores = [write_lines(runs_dir / name, Shape(steps=20)) for name in ("a", "b")]
    rankdeck = open_window()
    opened(rankdeck, [store.dir for store in stores], qtbot)
    again = opened(rankdeck, [store.dir for store in reversed(stores)], qtbot)
    assert rankdeck.window.pages.currentWidget() is again is rankdeck.comparing.page
    rankdeck.window.runs.run_chosen.emit(stores[0].dir)
    assert rankdeck.window.pages.currentWidget() is rankdeck.window.run_page
    assert rankdeck.comparing.page is None
