"""Removed runs in the window: listed, restored, deleted for good after a question."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.views.dialogs.bin_dialog import NAME, SIZE, BinDialog
from core.run_folder.bin import bin_of, list_bin, remove_run
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import START_S, Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [pytest.mark.windows, OFFSCREEN_NOISE]
SOON_MS = 10_000


@pytest.fixture
def binned(runs_dir: Path) -> Path:
    """A folder of runs with one run, and two in its bin."""
    for number, name in enumerate(("c", "b", "a")):
        write_lines(runs_dir / name, Shape(steps=20), created=START_S + number)
    for name in ("a", "b"):
        remove_run(RunStore(runs_dir / name))
    return runs_dir


def opened(open_window: OpenWindow, qtbot: QtBot) -> tuple[Rankdeck, BinDialog]:
    """The window, with the bin shown and counted."""
    rankdeck = open_window()
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 1, timeout=SOON_MS)
    rankdeck.window.runs.bin.click()
    dialog = rankdeck.bin.dialog
    assert dialog is not None
    wait_counted(dialog, qtbot, 2)
    return rankdeck, dialog


def wait_counted(dialog: BinDialog, qtbot: QtBot, count: int) -> None:
    qtbot.waitUntil(lambda: dialog.table.topLevelItemCount() == count, timeout=SOON_MS)
    qtbot.waitUntil(lambda: not dialog.count.text() or dialog.count.text().endswith("B"), timeout=SOON_MS)


def rows(dialog: BinDialog) -> dict[str, str]:
    items = [dialog.table.topLevelItem(number) for number in range(dialog.table.topLevelItemCount())]
    return {item.text(NAME): item.text(SIZE) for item in items}


def choose(dialog: BinDialog, name: str) -> None:
    dialog.table.clearSelection()
    (item,) = dialog.table.findItems(name, Qt.MatchFlag.MatchExactly)
    item.setSelected(True)


def test_runs_are_restored(open_window: OpenWindow, qtbot: QtBot, binned: Path) -> None:
    rankdeck, dialog = opened(open_window, qtbot)
    assert set(rows(dialog)) == {"a", "b"} and all(size.endswith("kB") for size in rows(dialog).values())
    assert dialog.count.text().startswith("2 runs · ") and not dialog.restore.isEnabled()
    choose(dialog, "b")
    assert dialog.count.text().startswith("1 run selected · ")
    dialog.restore.click()
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 2, timeout=SOON_MS)
    wait_counted(dialog, qtbot, 1)
    assert (binned / "b").is_dir() and set(rows(dialog)) == {"a"}
    dialog.reject()
    assert rankdeck.bin.dialog is None


def test_runs_are_deleted_only_after_a_question(open_window: OpenWindow, qtbot: QtBot, binned: Path) -> None:
    _, dialog = opened(open_window, qtbot)
    choose(dialog, "a")
    size = rows(dialog)["a"]
    dialog.table.setFocus()
    qtbot.keyClick(dialog.table, Qt.Key.Key_Delete)
    assert dialog.question is not None and dialog.question.text() == "Delete “a” for good?"
    assert f"This frees {size}." in dialog.question.informativeText()
    dialog.question.cancel.click()
    dialog.delete.click()
    dialog.question.delete.click()
    wait_counted(dialog, qtbot, 1)
    assert [run.path.name for run in list_bin(binned)] == ["b"]
    dialog.empty.click()
    dialog.question.delete.click()
    wait_counted(dialog, qtbot, 0)
    assert list_bin(binned) == [] and dialog.page.is_empty and not dialog.empty.isEnabled()


def test_a_run_that_leaves_the_bin_here_is_not_put_back_by_undo(
    open_window: OpenWindow, qtbot: QtBot, binned: Path
) -> None:
    rankdeck = open_window()
    panel = rankdeck.window.runs
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 1, timeout=SOON_MS)
    panel.removal_requested.emit([binned / "c"])
    qtbot.waitUntil(panel.undo.isEnabled, timeout=SOON_MS)
    rankdeck.window.actions_.bin.trigger()
    dialog = rankdeck.bin.dialog
    assert dialog is not None
    wait_counted(dialog, qtbot, 3)
    choose(dialog, "c")
    dialog.restore.click()
    wait_counted(dialog, qtbot, 2)
    assert not panel.undo.isEnabled() and panel.notice.title == ""


def test_a_run_that_is_gone_is_said(open_window: OpenWindow, qtbot: QtBot, binned: Path) -> None:
    _, dialog = opened(open_window, qtbot)
    choose(dialog, "a")
    shutil.rmtree(bin_of(binned) / "a")
    dialog.restore.click()
    wait_counted(dialog, qtbot, 1)
    qtbot.waitUntil(lambda: "is not in the bin" in dialog.notice.text, timeout=SOON_MS)
    assert dialog.empty.isEnabled()
