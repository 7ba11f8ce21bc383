"""The command palette in the real window: opened by its key, searched, and where each kind of entry leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.palette.command_palette import CommandPalette
from app.palette.palette_entries import RUN, SETTING
from tests.helpers.synthetic_run import Shape, write_lines
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def opened(rankdeck: Rankdeck, qtbot: QtBot) -> CommandPalette:
    """Opens it by its key."""
    window = rankdeck.window
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = rankdeck.palette.view
    assert palette is not None and palette.isVisible()
    qtbot.waitUntil(palette.line.hasFocus)
    return palette


def take(rankdeck: Rankdeck, query: str, qtbot: QtBot) -> str:
    """Types, presses Enter and returns the kind of what was chosen."""
    palette = opened(rankdeck, qtbot)
    qtbot.keyClicks(palette.line, query)
    entry = palette.current()
    assert entry is not None, query
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.isHidden()
    return entry.kind


def test_every_kind_of_entry_leads_where_it_says(open_window: OpenWindow, qtbot: QtBot, runs_dir: Path) -> None:
    for name in ("first-run", "second-run"):
        write_lines(runs_dir / name, Shape(steps=50))
    rankdeck = open_window()
    window = rankdeck.window
    qtbot.waitUntil(lambda: rankdeck.runs.model.rowCount() == 2, timeout=10_000)
    window.new_run.mode.radios["ddp"].click()  # Windows' own choice has no buffers to send
    assert take(rankdeck, "second-run", qtbot) == RUN
    assert rankdeck.showing.run_dir == runs_dir / "second-run"
    window.actions_.new_run.setChecked(False)
    assert take(rankdeck, "learning rate", qtbot) == SETTING
    assert window.actions_.new_run.isChecked()
    editor = window.new_run.form.rows["lr"].editor
    qtbot.waitUntil(lambda: isinstance(editor, QLineEdit) and editor.hasFocus())
    qtbot.waitUntil(lambda: not editor.visibleRegion().isEmpty())
    assert take(rankdeck, "broadcast buffers", qtbot) == SETTING  # rarely changed, so its group is folded
    rare = window.new_run.form.rows["broadcast_buffers"].editor
    qtbot.waitUntil(lambda: not rare.visibleRegion().isEmpty())


def test_it_is_used_and_left_by_keyboard(open_window: OpenWindow, qtbot: QtBot) -> None:
    rankdeck = open_window()
    window = rankdeck.window
    window.activateWindow()
    filter_line = window.runs.findChild(QLineEdit)
    assert filter_line is not None
    filter_line.setFocus()
    palette = opened(rankdeck, qtbot)
    first = palette.current()
    qtbot.keyClick(palette.line, Qt.Key.Key_Down)
    second = palette.current()
    assert first != second and second is not None
    assert palette.line.accessibleDescription() == second.spoken
    qtbot.keyClick(palette.line, Qt.Key.Key_Up)
    assert palette.current() == first
    qtbot.keyClicks(palette.line, "zzzz")
    assert palette.current() is None and palette.nothing.isVisible()
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert palette.isVisible()
    qtbot.keyClick(palette.line, Qt.Key.Key_Escape)
    assert palette.isHidden() and filter_line.hasFocus()
    palette = opened(rankdeck, qtbot)
    assert palette.line.text() == ""
    palette.close()
