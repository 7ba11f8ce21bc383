"""Desk: the sheet beside the pages where there is room, over them where not, and who has the keyboard then."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.window.desk import WIDE, Desk
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


class Parts:
    """A desk with a line on its page and two in its sheet."""

    def __init__(self, qtbot: QtBot) -> None:
        self.window = QWidget()
        qtbot.addWidget(self.window)
        pages, sheet = QWidget(), QWidget()
        self.below, self.first, self.last = QLineEdit(), QLineEdit(), QLineEdit()
        QVBoxLayout(pages).addWidget(self.below)
        column = QVBoxLayout(sheet)
        for line in (self.first, self.last):
            column.addWidget(line)
        self.desk = Desk(pages)
        self.desk.put_sheet(sheet)
        QHBoxLayout(self.window).addWidget(self.desk)

    def show(self, width: int, qtbot: QtBot) -> None:
        self.window.resize(width, 600)
        self.window.show()
        self.window.activateWindow()
        qtbot.waitUntil(self.window.isActiveWindow)
        self.desk.set_open(True)


def test_tab_stays_in_a_sheet_that_lies_over_the_page(qtbot: QtBot) -> None:
    parts = Parts(qtbot)
    parts.show(WIDE - 300, qtbot)
    parts.last.setFocus()
    qtbot.keyClick(parts.last, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is parts.first, "the page is dimmed"
    qtbot.keyClick(parts.first, Qt.Key.Key_Backtab)
    assert QApplication.focusWidget() is parts.last


def test_tab_reaches_the_page_beside_a_sheet(qtbot: QtBot) -> None:
    parts = Parts(qtbot)
    parts.show(WIDE + 100, qtbot)
    parts.last.setFocus()
    qtbot.keyClick(parts.last, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is parts.below


def test_escape_and_a_click_beside_the_sheet_ask_to_close_it(qtbot: QtBot) -> None:
    parts = Parts(qtbot)
    parts.show(WIDE - 300, qtbot)
    parts.first.setFocus()
    qtbot.waitUntil(parts.first.hasFocus)
    with qtbot.waitSignal(parts.desk.close_requested):
        qtbot.keyClick(parts.first, Qt.Key.Key_Escape)
    with qtbot.waitSignal(parts.desk.close_requested):
        qtbot.mouseClick(parts.desk.shade, Qt.MouseButton.LeftButton)
