"""Exposure of a window: it is shown, not minimised, and the system does not say that it is covered."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QWidget

# Windows sends no event when a person comes back to the window's desktop: it is asked twice a second, while away.
DWMWA_CLOAKED: Final = 14
CLOAKED_MS: Final = 500


class Exposure(QObject):
    """Follows the window that a widget is in.

    Qt calls a window that cannot be seen not exposed, as far as the system tells: one that is minimised, everywhere;
    one that others cover completely, on macOS and under most Wayland compositors. Windows and X11 keep a covered window
    exposed. Of a window on another virtual desktop Windows says it, but Qt does not ask.

    Args:
        widget: Any part of the window.

    Signals:
        uncovered: It could not be seen, and can be seen again.
    """

    uncovered = Signal()

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._handle: QWindow | None = None
        self._was_seen = False
        self._away = QTimer(self, interval=CLOAKED_MS)
        self._away.timeout.connect(self._look)
        widget.installEventFilter(self)

    @property
    def is_seen(self) -> bool:
        """Whether the widget is shown in a window that can be seen."""
        is_away = self._is_exposed() and is_cloaked(self._widget.window().winId())
        if is_away != self._away.isActive():
            self._away.start() if is_away else self._away.stop()
            self._was_seen = self._was_seen and not is_away
        return self._is_exposed() and not is_away

    def _is_exposed(self) -> bool:
        window = self._widget.window()
        handle = window.windowHandle()
        return self._widget.isVisible() and not window.isMinimized() and handle is not None and handle.isExposed()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and watched is self._widget:
            self._follow(self._widget.window().windowHandle())
        if event.type() in (QEvent.Type.Expose, QEvent.Type.WindowStateChange, QEvent.Type.Show, QEvent.Type.Hide):
            self._look()
        return False

    def _follow(self, handle: QWindow | None) -> None:
        """A window gets another handle when it is moved to another parent, or its flags are changed."""
        if handle is not self._handle:
            if self._handle is not None:
                self._handle.removeEventFilter(self)
            if handle is not None:
                handle.installEventFilter(self)
            self._handle = handle

    def _look(self) -> None:
        is_seen = self.is_seen
        if is_seen and not self._was_seen:
            self.uncovered.emit()
        self._was_seen = is_seen


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
