"""Folders in Settings: shown, opened, and another one chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.preferences.folder_row import FolderRow, KeptFolder
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def choose(row: FolderRow, folder: Path, qtbot: QtBot) -> Path:
    """Chooses a folder in the system's dialog; what the row says was chosen."""
    row.change.click()
    chooser = row.findChild(QFileDialog)
    assert chooser is not None
    with qtbot.waitSignal(row.chosen) as chosen:
        chooser.fileSelected.emit(str(folder))
    chooser.close()
    found: Path = chosen.args[0]
    return found


def test_another_folder_is_used_at_once_or_from_the_next_start(qtbot: QtBot, tmp_path: Path) -> None:
    now, other = tmp_path / "now", tmp_path / "other"
    other.mkdir()
    waits = FolderRow(KeptFolder("Runs", now, "What there is to know."), waits=True)
    at_once = FolderRow(KeptFolder("Models", now, "What there is to know."))
    for row in (waits, at_once):
        qtbot.addWidget(row)
        row.show()
        assert str(now) in row.path.full_text and row.note.text() == "What there is to know."
        assert choose(row, other, qtbot) == other and str(other) in row.path.full_text
        with qtbot.waitSignal(row.opened) as opened:
            row.open.click()
        assert opened.args == [now], "what is there can be looked at"
    assert waits.note.text().startswith("Used from the next start") and str(now) in waits.note.text()
    assert at_once.note.text() == "What there is to know."


def test_a_folder_that_was_chosen_before_is_shown(qtbot: QtBot, tmp_path: Path) -> None:
    row = FolderRow(KeptFolder("Runs", tmp_path / "now", "", coming=tmp_path / "next"), waits=True)
    qtbot.addWidget(row)
    assert row.path.full_text.endswith("next") and row.note.text().startswith("Used from the next start")


def test_a_variable_that_sets_the_folder_is_named(qtbot: QtBot, tmp_path: Path) -> None:
    row = FolderRow(KeptFolder("Models", tmp_path, "", fixed_by="HF_HOME"))
    qtbot.addWidget(row)
    assert not row.change.isEnabled()
    assert "HF_HOME" in row.note.text() and "HF_HOME" in row.change.toolTip()
