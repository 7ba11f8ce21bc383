"""Dialogs on small screens."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from app.widgets.dialog import FRAME, set_first_size
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_a_dialog_is_no_larger_than_its_screen(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    set_first_size(dialog, 300, 200)
    assert dialog.size() == QSize(300, 200)
    set_first_size(dialog, 100_000, 100_000)
    room = dialog.screen().availableSize()
    assert dialog.size() == QSize(room.width(), room.height() - FRAME)
