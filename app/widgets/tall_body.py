"""Body of a dialog that grows with its content as far as the screen has room, then scrolls."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


class TallBody(QScrollArea):
    """Asks for the height that its contents need, as far as there is room for it.

    Args:
        body: The contents, laid out.
        most: How high it may be.
    """

    def __init__(self, body: QWidget, most: Callable[[], int]) -> None:
        super().__init__()
        self._body = body
        self._most = most
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setWidget(body)
        for see_through in (body, self.viewport()):
            see_through.setAutoFillBackground(False)
        body.installEventFilter(self)

    def minimumSizeHint(self) -> QSize:
        least = self._body.minimumSizeHint()
        layout = self._body.layout()
        if layout is not None and layout.hasHeightForWidth():
            least.setHeight(layout.minimumHeightForWidth(max(self.viewport().width(), least.width())))
        return least.boundedTo(QSize(least.width(), self._most()))

    def sizeHint(self) -> QSize:
        return self._body.sizeHint().boundedTo(QSize(self._body.sizeHint().width(), self._most()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._body and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
