"""Identity of the program for the desktop: groups its windows, toasts and pinned button."""

from __future__ import annotations

import sys
from typing import Final

from PySide6.QtGui import QGuiApplication

# The same in `installer/windows/rankdeck.nsi`, which writes it into the Start menu's entry.
APP_ID: Final = "Rankdeck.Rankdeck"
DESKTOP_NAME: Final = "rankdeck"


def set_app_id() -> bool:
    """Windows: make windows and toasts Rankdeck's and not Python's; return whether Windows did.

    Before the first window: https://learn.microsoft.com/windows/win32/shell/appids
    """
    if sys.platform == "win32":
        import ctypes

        answer = ctypes.WinDLL("shell32").SetCurrentProcessExplicitAppUserModelID(ctypes.c_wchar_p(APP_ID))
        return int(answer) == 0
    return False


def set_desktop_name() -> None:
    """Set the name by which Linux panels find the program's entry, icon and notifications."""
    if sys.platform == "linux":
        QGuiApplication.setDesktopFileName(DESKTOP_NAME)
