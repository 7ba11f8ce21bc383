"""Whether a window can be seen: shown or minimised."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.exposure import Exposure

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


def test_a_minimised_window_is_not_seen(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    followed = Exposure(window)
    assert not followed.is_seen
    with qtbot.waitSignal(followed.uncovered, timeout=30_000):
        window.show()
    assert followed.is_seen
    window.showMinimized()
    qtbot.waitUntil(lambda: not followed.is_seen, timeout=30_000)
    with qtbot.waitSignal(followed.uncovered, timeout=30_000):
        window.showNormal()
