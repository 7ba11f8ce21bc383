"""Sparkline: a metric's course as a line of a few pixels' height, without axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

WIDTH: Final = 1.3


def paint_sparkline(painter: QPainter, area: QRect, values: Sequence[float], colour: QColor) -> None:
    """Draws at least two finite values from the left to the right edge, the lowest at the bottom."""
    low, high = min(values), max(values)
    # Halves, because the difference of two large finite numbers may not be one.
    span = high / 2 - low / 2
    line = QPolygonF()
    for number, value in enumerate(values):
        share = (value / 2 - low / 2) / span if span > 0 else 0.5
        x = area.left() + (area.width() - 1) * number / (len(values) - 1)
        line.append(QPointF(x, area.bottom() - (area.height() - 1) * share))
    painter.setPen(QPen(colour, WIDTH, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(line)
