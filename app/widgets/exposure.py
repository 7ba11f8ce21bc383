"""Exposure of a window: it is shown, not minimised, and not covered as far as the system tells."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QWidget


class Exposure(QObject):
    """Follows the window that a widget is in.

    Qt calls a window not exposed that is minimised, everywhere, or covered completely, on macOS and under most Wayland
    compositors. Windows and X11 keep a covered window exposed.

    Signals:
        uncovered: The window could not be seen, and can be seen again.
    """

    uncovered = Signal()

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._handle: QWindow | None = None
        self._was_seen = False
        widget.installEventFilter(self)

    @property
    def is_seen(self) -> bool:
        window = self._widget.window()
        handle = window.windowHandle()
        return self._widget.isVisible() and not window.isMinimized() and handle is not None and handle.isExposed()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and watched is self._widget:
            self._follow(self._widget.window().windowHandle())
        if event.type() in (QEvent.Type.Expose, QEvent.Type.WindowStateChange, QEvent.Type.Show, QEvent.Type.Hide):
            is_seen = self.is_seen
            if is_seen and not self._was_seen:
                self.uncovered.emit()
            self._was_seen = is_seen
        return False

    def _follow(self, handle: QWindow | None) -> None:
        """Watch another handle: a window gets one when it is moved to another parent, or its flags are changed."""
        if handle is not self._handle:
            if self._handle is not None:
                self._handle.removeEventFilter(self)
            if handle is not None:
                handle.installEventFilter(self)
            self._handle = handle
