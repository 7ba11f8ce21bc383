"""Windows says of a window whether it is left out of the picture, as on another virtual desktop."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.exposure import Exposure, is_cloaked

pytestmark = [pytest.mark.windows, pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")]
DWMWA_CLOAK: Final = 13


def cloak(window: QWidget, on: bool) -> bool:
    """Whether the system did it."""
    value = ctypes.c_int(on)
    handle = ctypes.c_void_p(window.winId())
    failed = ctypes.windll.dwmapi.DwmSetWindowAttribute(handle, DWMWA_CLOAK, ctypes.byref(value), 4)
    return not failed and is_cloaked(window.winId()) == on


def test_a_cloaked_window_is_not_seen(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    followed = Exposure(window)
    with qtbot.waitExposed(window):
        window.show()
    assert followed.is_seen and not is_cloaked(window.winId())
    if not cloak(window, True):
        pytest.skip("this system cloaks no window: Wine does not")
    assert not followed.is_seen
    assert cloak(window, False)
    qtbot.waitSignal(followed.uncovered, timeout=30_000).wait()
    assert followed.is_seen
