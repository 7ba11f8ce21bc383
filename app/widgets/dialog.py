"""Dialog: the frame that dialogs share, with a notice, the parts in a column, and buttons at the foot."""

from __future__ import annotations

import functools

from PySide6.QtCore import Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLayout, QPushButton, QVBoxLayout, QWidget

from app.widgets.build import lay_column
from app.widgets.first_size import set_first_size
from app.widgets.notice_bar import NoticeBar

Role = QDialogButtonBox.ButtonRole
SPACING, MARGINS = 8, (16, 16, 16, 12)


class Dialog(QDialog):
    """Deleted once it is closed.

    Attributes:
        notice: Says what is wrong; made, and then laid out, where a dialog has something to say.
        buttons: At the foot; Tab takes them in the order in which they are added.
    """

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
        """Adds buttons that the system names. Some styles draw a dark sign on these alone: it is taken away."""
        for which in standard:
            self.buttons.addButton(which).setIcon(QIcon())

    def confirm_nothing(self) -> None:
        """Enter presses no button: each change has its effect at once, or there is none."""
        for button in self.buttons.findChildren(QPushButton):
            button.setAutoDefault(False)

    def lay_out(
        self, *parts: QWidget | QLayout, grow: QWidget | QLayout | None = None, size: tuple[int, int] | None = None
    ) -> QVBoxLayout:
        """Lays parts out above the buttons; as large as `size`, or as the screen has room for."""
        column = lay_column(self, *parts, self.buttons, spacing=SPACING, margins=MARGINS, grow=grow)
        if size is not None:
            set_first_size(self, *size)
        return column
