"""A page of the window: Escape closes it, other keys do not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.widgets.page import LEAST_WIDTH, Page
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


def test_escape_closes_it_and_nothing_else_does(qtbot: QtBot) -> None:
    page = Page()
    qtbot.addWidget(page)
    assert page.minimumSizeHint().width() == LEAST_WIDTH
    with qtbot.assertNotEmitted(page.close_requested):
        qtbot.keyClick(page, Qt.Key.Key_F5)
    with qtbot.waitSignal(page.close_requested):
        qtbot.keyClick(page, Qt.Key.Key_Escape)
