"""Line of text with its unit at its right end."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.style.tones import muted

_GAP: Final = 8
# Below this width the unit gives way to the value.
_LEAST: Final = 88


class UnitEdit(QLineEdit):
    """An editor of one line; the unit is drawn inside it, muted, and text ends before it."""

    def __init__(self, unit: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.unit = ""
        self.set_unit(unit)

    def set_unit(self, unit: str) -> None:
        if unit != self.unit:
            self.unit = unit
            width = self.fontMetrics().horizontalAdvance(unit)
            self.setTextMargins(0, 0, width + _GAP if unit else 0, 0)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.unit or self.width() < _LEAST:
            return
        painter = QPainter(self)
        painter.setPen(muted(self.palette()))
        painter.drawText(
            QRect(self.rect()).adjusted(0, 0, -_GAP, 0),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            self.unit,
        )
