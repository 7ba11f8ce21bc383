"""A notice over a part of the window, which it neither pushes nor resizes."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.views.widgets.notice_bar import NoticeBar, Step

WIDTH: Final = 640
MARGIN: Final = 16
BRIEF_MS: Final = 4000


class FloatingNotice(NoticeBar):
    """A notice bar at the lower edge of `ground`, in its middle."""

    def __init__(self, ground: QWidget) -> None:
        super().__init__(ground)
        self._ground = ground
        self._end = QTimer(self, singleShot=True, interval=BRIEF_MS)
        self._end.timeout.connect(self.clear)
        ground.installEventFilter(self)

    def say(self, kind: str, title: str, text: str, step: Step | None = None) -> None:
        self._end.stop()
        super().say(kind, title, text, step)
        self._place()

    def say_briefly(self, title: str, text: str) -> None:
        """Confirms what a person has just done; goes away by itself."""
        self.say("success", title, text)
        self._end.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._ground and event.type() == QEvent.Type.Resize and not self.isHidden():
            self._place()
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """Takes the room that another text needs: it grows upwards, and no word is cut."""
        if event.type() == QEvent.Type.LayoutRequest and not self.isHidden():
            self._place()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._place()

    def _place(self) -> None:
        room = self._ground.rect()
        margin = MARGIN if room.width() > WIDTH else MARGIN // 2
        width = min(WIDTH, room.width() - 2 * margin)
        self.fit_to(width)
        if (layout := self.layout()) is not None:
            layout.activate()
        height = self.heightForWidth(width) if self.hasHeightForWidth() else self.sizeHint().height()
        height = max(height, self.minimumSizeHint().height())
        self.setGeometry((room.width() - width) // 2, room.height() - height - margin, width, height)
        self.raise_()
