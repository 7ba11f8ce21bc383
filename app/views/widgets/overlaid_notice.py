"""Notice over a view: it covers the lower end of another widget and moves nothing."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from app.views.widgets.notice_bar import NoticeBar

_MARGIN: Final = 8


class OverlaidNotice(NoticeBar):
    """A `NoticeBar` at the lower end of `anchor`, as wide as that, whatever it says.

    Args:
        anchor: A widget in `host`.
        host: The widget that holds both; its layout does not know of the notice.
    """

    def __init__(self, anchor: QWidget, host: QWidget) -> None:
        super().__init__()
        self.setParent(host)
        self._anchor = anchor
        anchor.installEventFilter(self)
        self.hide()

    def say(self, *args: object, **others: object) -> None:
        """As `NoticeBar.say`; over everything else in the host."""
        super().say(*args, **others)  # type: ignore[arg-type]
        self._place()
        self.raise_()

    def event(self, event: QEvent) -> bool:
        """Takes the room that a longer or shorter text needs."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._place()
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._anchor and event.type() in (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show):
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        """Every word is shown: it grows upwards, at most to the anchor's top."""
        if self.isHidden():
            return
        area, layout = self._anchor.geometry(), self.layout()
        width = area.width() - 2 * _MARGIN
        if layout is None or width <= 0:
            return
        self.fit_to(width)
        layout.activate()
        needed = max(layout.heightForWidth(width), layout.minimumSize().height())
        self.setGeometry(area.left() + _MARGIN, area.bottom() + 1 - _MARGIN - needed, width, needed)
