"""What Windows knows of the program: its id, its windows' resolution, and the colour of their titles."""

from __future__ import annotations

import ctypes
import sys
from ctypes import wintypes

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.outside.app_identity import APP_ID, set_app_id
from app.style.theme import Theme
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [
    OFFSCREEN_NOISE,
    pytest.mark.windows,
    pytest.mark.skipif(sys.platform != "win32", reason="Windows' calls"),
]
PER_MONITOR = 2  # DPI_AWARENESS_PER_MONITOR_AWARE
NOT_IMPLEMENTED = 0x80004001
DARK_TITLE = 20  # DWMWA_USE_IMMERSIVE_DARK_MODE


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    return widget


def test_windows_and_toasts_are_the_program_s_and_not_python_s() -> None:
    assert set_app_id()
    text = ctypes.c_wchar_p()
    shell32 = ctypes.WinDLL("shell32")  # type: ignore[attr-defined, unused-ignore]
    answer = shell32.GetCurrentProcessExplicitAppUserModelID(ctypes.byref(text))
    if answer & 0xFFFFFFFF == NOT_IMPLEMENTED:
        pytest.skip("this Windows takes an id and does not give it back")
    assert (answer, text.value) == (0, APP_ID)


def test_each_monitor_has_its_own_resolution(window: QWidget) -> None:
    user32 = ctypes.WinDLL("user32")  # type: ignore[attr-defined, unused-ignore]
    user32.GetWindowDpiAwarenessContext.restype = ctypes.c_void_p
    user32.GetAwarenessFromDpiAwarenessContext.argtypes = [ctypes.c_void_p]
    context = user32.GetWindowDpiAwarenessContext(wintypes.HWND(int(window.winId())))
    assert user32.GetAwarenessFromDpiAwarenessContext(context) == PER_MONITOR


def test_the_title_is_dark_in_the_dark_theme(window: QWidget, qapp: QApplication) -> None:
    theme = Theme(qapp)
    before = qapp.palette()
    try:
        for name, expected in (("dark", 1), ("light", 0)):
            theme.choose(name)
            qapp.processEvents()
            value = wintypes.BOOL(2)
            dwmapi = ctypes.WinDLL("dwmapi")  # type: ignore[attr-defined, unused-ignore]
            window_id = wintypes.HWND(int(window.winId()))
            answer = dwmapi.DwmGetWindowAttribute(window_id, DARK_TITLE, ctypes.byref(value), ctypes.sizeof(value))
            if answer != 0:
                pytest.skip(f"this Windows does not tell the colour of a title (0x{answer & 0xFFFFFFFF:08x})")
            assert value.value == expected
    finally:
        theme.choose("system")
        qapp.setPalette(before)
        theme.deleteLater()
