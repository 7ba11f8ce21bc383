"""Comparing runs from the window: chosen in a list, read in the background, shown in a window of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.views.compare.compare_dialog import CompareDialog
from app.views.dialogs.choose_runs_dialog import ChooseRunsDialog
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
SOON_MS = 10_000


def test_chosen_runs_are_compared_and_read_again(open_window: OpenWindow, runs_dir: Path, qtbot: QtBot) -> None:
    for name in ("first", "second"):
        write_lines(runs_dir / name, Shape(steps=40, eval_every=20))
    window = open_window().window
    window.actions_.compare.trigger()
    qtbot.waitUntil(lambda: window.findChild(ChooseRunsDialog) is not None, timeout=SOON_MS)
    choice = window.findChild(ChooseRunsDialog)
    assert choice is not None
    for row in range(choice.list.count()):
        choice.list.item(row).setCheckState(Qt.CheckState.Checked)
    choice.go.click()
    qtbot.waitUntil(lambda: window.findChild(CompareDialog) is not None, timeout=SOON_MS)
    dialog = window.findChild(CompareDialog)
    assert dialog is not None and dialog.isVisible()
    assert sorted(dialog.comparison.labels) == ["first", "second"]
    assert len(dialog.frames) == 3
    dialog.refresh.click()
    qtbot.waitUntil(lambda: window.findChild(CompareDialog) not in (None, dialog), timeout=SOON_MS)
    assert window.notice.title == ""
