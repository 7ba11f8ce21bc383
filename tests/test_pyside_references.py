"""PySide6 6.12.0 on Python 3.11 loses one reference to None at every Qt call that returns nothing.

A window then dies after some minutes with ``Fatal Python error: none_dealloc``. The pinned version must not.
"""

from __future__ import annotations

import sys

import pytest
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

pytestmark = pytest.mark.windows

CALLS = 2_000
# Other threads and caches hold a few more or fewer references to None from one moment to the next.
NOISE = CALLS // 10


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="None is immortal since Python 3.12: its references do not count"
)
def test_calls_that_return_nothing_keep_none(qtbot: QtBot) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    pen = QPen()
    before = sys.getrefcount(None)
    for number in range(CALLS):
        label.setText(str(number))
        pen.setWidth(number % 7)
    lost = before - sys.getrefcount(None)
    assert abs(lost) < NOISE, f"{lost} references to None were lost in {2 * CALLS} calls"
