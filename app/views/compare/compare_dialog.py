"""Window of its own for a comparison."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QWidget

from app.views.compare.compare_page import ComparePage
from app.views.widgets.build import lay_column

SIZE: Final = (1100, 760)


class CompareDialog(QDialog):
    """Holds the page."""

    def __init__(self, page: ComparePage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.setWindowTitle("Compare – Rankdeck")
        lay_column(self, page, grow=page)
        self.resize(*SIZE)
