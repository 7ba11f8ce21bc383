"""Header of the New run sheet: its title, the run it was filled from, Reset and the cross."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.widgets.build import icon_button, lay_row, page_title
from app.widgets.buttons import Chip
from app.widgets.elided_label import ElidedLabel


class SheetHeader(QWidget):
    """Title of the sheet: new settings, or those of a run.

    Signals:
        reset_requested: The recipe's defaults are wanted.
        close_requested: The sheet is to be closed.
    """

    reset_requested = Signal()
    close_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.title = page_title("New run")
        self.copied = ElidedLabel()
        self.copied.setAccessibleName("Filled from")
        self.reset = Chip("Reset", "Reset every setting to the recipe's defaults")
        self.reset.clicked.connect(self.reset_requested)
        self.cross = icon_button("close", "Close; your settings are kept", self.close_requested.emit, "Close New run")
        self.cross.setAutoRaise(True)
        parts = (self.title, self.copied, self.reset, self.cross)
        lay_row(self, *parts, spacing=8, margins=(16, 12, 8, 8), grow=self.copied)
        self.show_copied("")

    def show_copied(self, name: str) -> None:
        """Names the run whose settings these are; empty for none."""
        self.copied.set_full_text(f"Copy of {name}" if name else "")

    def show_changed(self, changed: bool) -> None:
        self.reset.setVisible(changed)
