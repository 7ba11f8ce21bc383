"""Comparing runs from the window: chosen in a list, read in the background, followed while one of them is running."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.views.compare.compare_page import ComparePage
from app.views.dialogs.choose_runs_dialog import ChooseRunsDialog
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_columns, write_lines
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
    window.actions_.compare.trigger()
    qtbot.waitUntil(lambda: window.findChild(ChooseRunsDialog) is not None, timeout=SOON_MS)
    choice = window.findChild(ChooseRunsDialog)
    assert choice is not None
    for row in range(choice.list.count()):
        choice.list.item(row).setCheckState(Qt.CheckState.Checked)
    choice.go.click()
    page = rankdeck.comparing.page
    assert page is not None and page.isVisible()
    qtbot.waitUntil(lambda: len(page.runs) == 2, timeout=SOON_MS)
    assert sorted(page.table.model.comparison.labels) == ["first", "second"]
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
    live.write_state(live.stored_state().replace(state="training", loss=1.0))
    rankdeck = open_window()
    page = opened(rankdeck, [live.dir, done.dir], qtbot)
    assert page.runs[0].series.rank(0).rows == 40
    with live.metrics.open("ab") as file:
        line = {"event": "step", "ts": 1.9e9, "rank": 0, "attempt": 1, "step": 41, "loss": 0.5}
        file.write(json.dumps(line).encode() + b"\n")
    write_notes(live.dir, RunNotes(name="renamed"))
    page.refresh.click()
    qtbot.waitUntil(lambda: page.runs[0].series.rank(0).rows == 41, timeout=SOON_MS)
    assert page.runs[0].label == "renamed"
    assert page.time_axis.extent == (1.0, 41.0)


def test_damaged_deleted_and_unlike_runs_have_a_sentence(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    good = write_lines(runs_dir / "good", Shape(steps=20))
    other = write_lines(runs_dir / "other", Shape(steps=20), recipe="script")
    damaged = RunStore(runs_dir / "damaged")
    shutil.copytree(good.dir, damaged.dir)
    damaged.state_json.write_text("{", encoding="utf-8")
    damaged.metrics.write_bytes(b"\x00\xff{]\n" * 9)
    rankdeck = open_window()
    page = opened(rankdeck, [good.dir, other.dir, damaged.dir, runs_dir / "gone"], qtbot)
    told = page.notes.text().splitlines()
    assert told[0].startswith("“damaged” is damaged: ")
    assert told[1:] == [
        "“gone” is no longer on this disk.",
        "The runs train different recipes, so no result is marked as the best.",
    ]
    shutil.rmtree(other.dir)
    page.refresh.click()
    wanted = "“other” cannot be read any further: it was deleted while it was shown."
    qtbot.waitUntil(lambda: wanted in page.notes.text(), timeout=SOON_MS)
    assert page.runs[1].series.rank(0).rows == 20


def test_runs_of_a_million_steps_are_read_column_by_column(
    open_window: OpenWindow, runs_dir: Path, qtbot: QtBot
) -> None:
    stores = [write_columns(runs_dir / f"long{n}", Shape(steps=1_000_000, ranks=1, seed=n)) for n in range(2)]
    rankdeck = open_window()
    page = opened(rankdeck, [store.dir for store in stores], qtbot)
    qtbot.waitUntil(lambda: not page.cards.grid.is_waiting and not page.cards.unread(), timeout=SOON_MS)
    qtbot.waitUntil(lambda: all(len(chart.layers) >= 2 for chart in page.charts()[:2]), timeout=SOON_MS)
    shutil.rmtree(stores[1].columns)
    page.time_axis.show_range(400_000, 400_500)
    page.set_axis("time")
    page.cards.grid.verticalScrollBar().setValue(10_000)
    qtbot.waitUntil(lambda: not page.cards.unread(), timeout=SOON_MS)


def test_choosing_a_run_leaves_the_comparison(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    stores = [write_lines(runs_dir / name, Shape(steps=20)) for name in ("a", "b")]
    rankdeck = open_window()
    opened(rankdeck, [store.dir for store in stores], qtbot)
    again = opened(rankdeck, [store.dir for store in reversed(stores)], qtbot)
    assert rankdeck.window.pages.currentWidget() is again is rankdeck.comparing.page
    rankdeck.window.runs.run_chosen.emit(stores[0].dir)
    assert rankdeck.window.pages.currentWidget() is rankdeck.window.run_page
    assert rankdeck.comparing.page is None and rankdeck.window.compare_page is None


def test_one_run_alone_cannot_be_compared(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    store = write_lines(runs_dir / "only", Shape(steps=5))
    rankdeck = open_window()
    rankdeck.comparing.compare([store.dir, store.dir])
    page = rankdeck.comparing.page
    assert page is not None
    qtbot.waitUntil(lambda: page.notes.text() != "", timeout=SOON_MS)
    assert page.notes.text().startswith("These runs cannot be compared.")
