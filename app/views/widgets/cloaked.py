"""Windows that the system draws nowhere though they are shown: under Windows, those of another virtual desktop."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

DWMWA_CLOAKED: Final = 14


def is_cloaked(window: int) -> bool:
    """Whether the desktop window manager of Windows leaves a window out of the picture; elsewhere none is.

    Args:
        window: Its handle (`QWidget.winId`).
    """
    if sys.platform != "win32":
        return False
    cloaked = ctypes.c_uint32(0)
    size = ctypes.sizeof(cloaked)
    attribute = ctypes.windll.dwmapi.DwmGetWindowAttribute
    failed = attribute(ctypes.c_void_p(window), DWMWA_CLOAKED, ctypes.byref(cloaked), size)
    return not failed and cloaked.value != 0
