"""Place of the main window: its size at the first start, and where it was left, also after it was killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, QSize, QTimer
from PySide6.QtGui import QGuiApplication, QRegion
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.widgets.dialog import FRAME, room_for
from app.window.desk import SHEET_WIDTH, Desk

if TYPE_CHECKING:
    from app.settings import Settings

# 960 × 540, which is 1920 × 1080 at 200 %, has so much room beside a task bar and a title.
MIN_SIZE: Final = (900, 450)
START_SIZE: Final = (1320, 840)
# What a window's frame takes at its sides and its bottom.
EDGE: Final = 8
# After the last change of its place: a window that is killed is found again where it was.
REMEMBER_MS: Final = 500


class WindowPlace(QObject):
    """Keeps the window's geometry, the width of the runs in `panes`, and that of the sheet in the settings."""

    def __init__(self, window: QMainWindow, panes: QSplitter, desk: Desk, settings: Settings) -> None:
        super().__init__(window)
        self._window, self._panes, self._desk, self._settings = window, panes, desk, settings
        self._soon = QTimer(self, singleShot=True, interval=REMEMBER_MS)
        self._soon.timeout.connect(self.remember)
        panes.splitterMoved.connect(self._on_changed)
        window.installEventFilter(self)

    def restore(self) -> None:
        """Restores the last place, or one that the screen has room for."""
        window = self._window
        room, screen = room_for(window) - QSize(2 * EDGE, EDGE), window.screen().availableGeometry()
        window.setMinimumSize(QSize(*MIN_SIZE).boundedTo(room))
        window.resize(QSize(*START_SIZE).boundedTo(room))
        # Windows would put it a little off the corner, and so partly off a small screen.
        left, top = screen.center().x() - window.width() // 2, max(0, room.height() - window.height()) // 2
        window.move(left, screen.top() + top)
        if window.restoreGeometry(self._settings.layout("window/geometry")):
            self._keep_on_screens()
        self._panes.restoreState(self._settings.layout("splitters/runs"))
        width = self._settings.values("window").get("sheet_width")
        self._desk.sheet_width = width if isinstance(width, int) and width > 0 else SHEET_WIDTH

    def remember(self) -> None:
        self._soon.stop()
        self._settings.set_values("window", {"sheet_width": self._desk.sheet_width})
        self._settings.set_layout("window/geometry", self._window.saveGeometry())
        if (runs := self._panes.widget(0)) is not None and not runs.isHidden():
            self._settings.set_layout("splitters/runs", self._panes.saveState())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.WindowStateChange):
            self._on_changed()
        return super().eventFilter(watched, event)

    def _on_changed(self) -> None:
        if self._window.isVisible() and not self._window.isMinimized():
            self._soon.start()

    def _keep_on_screens(self) -> None:
        """Moves a window back whose screen is gone or smaller now; Qt does it too, but for the frame."""
        window = self._window
        frame = window.geometry().adjusted(-EDGE, -FRAME, EDGE, EDGE)
        outside = QRegion(frame)
        for screen in QGuiApplication.screens():
            outside -= QRegion(screen.availableGeometry())
        if not outside.isEmpty() and not window.isMaximized() and not window.isFullScreen():
            screen = QGuiApplication.screenAt(frame.center()) or QGuiApplication.primaryScreen()
            area = screen.availableGeometry()
            frame.setSize(frame.size().boundedTo(area.size()))
            frame.moveLeft(min(max(frame.left(), area.left()), area.right() + 1 - frame.width()))
            frame.moveTop(min(max(frame.top(), area.top()), area.bottom() + 1 - frame.height()))
            window.setGeometry(frame.adjusted(EDGE, FRAME, -EDGE, -EDGE))
