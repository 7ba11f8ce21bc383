"""Dialog: the frame that dialogs share, with a notice, the parts in a column, and buttons at the foot."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFrame, QLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.widgets.build import lay_column
from app.widgets.notice_bar import NoticeBar

Role = QDialogButtonBox.ButtonRole
SPACING, MARGINS = 8, (16, 16, 16, 12)
# A title bar, as high as the one of Windows 11.
FRAME: Final = 32


class Dialog(QDialog):
    """A dialog that is deleted once it is closed; subclasses that use `notice` lay it out."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.buttons = QDialogButtonBox()
        self.buttons.rejected.connect(self.reject)

    @functools.cached_property
    def notice(self) -> NoticeBar:
        return NoticeBar()

    def add_button(self, text: str, role: Role, tip: str = "") -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        self.buttons.addButton(button, role)
        return button

    def add_standard(self, *standard: QDialogButtonBox.StandardButton) -> None:
        for which in standard:
            self.buttons.addButton(which)

    def lay_out(
        self, *parts: QWidget | QLayout, grow: QWidget | QLayout | None = None, size: tuple[int, int] | None = None
    ) -> QVBoxLayout:
        """Lay parts out above the buttons; `size` is limited by the screen."""
        column = lay_column(self, *parts, self.buttons, spacing=SPACING, margins=MARGINS, grow=grow)
        if size is not None:
            set_first_size(self, *size)
        return column


class TallBody(QScrollArea):
    """Asks for the height of its laid-out contents, up to `most()`."""

    def __init__(self, body: QWidget, most: Callable[[], int]) -> None:
        super().__init__(widgetResizable=True)
        self._body = body
        self._most = most
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()  # texts wrap at other places

    def sizeHint(self) -> QSize:
        return self._body.sizeHint().boundedTo(QSize(self._body.sizeHint().width(), self._most()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._body and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


def set_first_size(dialog: QDialog, width: int, height: int) -> None:
    """Resize a dialog, as far as its screen has room beside the task bar."""
    dialog.resize(QSize(width, height).boundedTo(room_for(dialog)))


def room_for(window: QWidget) -> QSize:
    """The largest size of a window on its screen, beside the task bar and below its title bar."""
    return (window.parentWidget() or window).screen().availableSize() - QSize(0, FRAME)
