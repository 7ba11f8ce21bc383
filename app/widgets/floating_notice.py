"""A notice over a part of the window, which it neither pushes nor resizes."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.widgets.notice_bar import NoticeBar, Step

WIDTH: Final = 640
MARGIN: Final = 16
BRIEF_MS: Final = 4000


class FloatingNotice(NoticeBar):
    """A notice bar at the lower edge of `ground`, above its part `floor`.

    A notice that is not an error ends after `ends_after_ms`, unless it is under the mouse or has the focus.
    """

    def __init__(self, ground: QWidget, floor: QWidget | None = None, ends_after_ms: int | None = None) -> None:
        super().__init__(ground)
        self._ground, self._floor, self._ends_after_ms = ground, floor, ends_after_ms
        self._end = QTimer(self, singleShot=True)
        self._end.timeout.connect(self._on_end)
        for part in (ground, floor):
            if part is not None:
                part.installEventFilter(self)

    def say(self, kind: str, title: str, text: str = "", step: Step | None = None) -> None:
        self._end.stop()
        super().say(kind, title, text, step)
        self._place()
        if self._ends_after_ms is not None and kind != "error":
            self._end.start(self._ends_after_ms)

    def say_briefly(self, title: str, text: str, kind: str = "success", ms: int = BRIEF_MS) -> None:
        """Show what needs no answer, for a few seconds."""
        self.say(kind, title, text)
        self._end.start(ms)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and not self.isHidden():
            self._place()
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """Grow upwards with a longer text, so that no word is cut."""
        if event.type() == QEvent.Type.LayoutRequest and not self.isHidden():
            self._place()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._place()

    def _on_end(self) -> None:
        if self.underMouse() or self.isAncestorOf(self.window().focusWidget() or self.window()):
            self._end.start()
        else:
            self.clear()

    def _place(self) -> None:
        room, bottom = self._ground.rect(), self._ground.height() if self._floor is None else self._floor.y()
        margin = MARGIN if room.width() > WIDTH else MARGIN // 2
        width = min(WIDTH, room.width() - 2 * margin)
        self.fit_to(width)
        if (layout := self.layout()) is not None:
            layout.activate()
        height = self.heightForWidth(width) if self.hasHeightForWidth() else self.sizeHint().height()
        height = max(height, self.minimumSizeHint().height())
        height = min(height, max(0, bottom - 2 * margin))
        self.setGeometry((room.width() - width) // 2, bottom - height - margin, width, height)
        self.raise_()
