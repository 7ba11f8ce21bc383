"""Graphics item for what happened to a run: dashed lines where it was resumed, ticks where it saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyqtgraph
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPolygonF

from app.run_data.marks import Mark
from app.run_data.series import XAxis
from app.views.plots.drawing import hairline
from app.views.plots.view_box import PlotView
from app.views.style.palette import PlotColours

APART: Final = 5.0
TICK: Final = 5.0
# Lower plots show the lines without their texts.
LEAST_HEIGHT: Final = 90.0


class MarksItem(pyqtgraph.GraphicsObject):
    """Drawn in the view's pixels, like the curves."""

    def __init__(self, view: PlotView) -> None:
        super().__init__(view)
        self._view = view
        self.marks: Sequence[Mark] = ()
        self._axis: XAxis = "step"
        self._colours: PlotColours | None = None
        self._font = QFont()
        self.setZValue(1)  # an area would hide it

    def show_marks(self, marks: Sequence[Mark], axis: XAxis, colours: PlotColours, font: QFont) -> None:
        if (marks, axis, colours, font) != (self.marks, self._axis, self._colours, self._font):
            self.marks, self._axis, self._colours, self._font = marks, axis, colours, font
            self.update()

    def place(self, mark: Mark) -> float:
        """Where a mark stands on the axis that is shown."""
        return mark.step if self._axis == "step" else mark.ts

    def boundingRect(self) -> QRectF:
        rect: QRectF = self._view.rect()
        return rect

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        """Draws the marks in view; of ticks that would touch, the first."""
        colours, area = self._colours, self.boundingRect()
        low, high = self._view.viewRange()[0]
        if colours is None or not self.marks or area.isEmpty() or high <= low:
            return
        taken = {"resumed": float("-inf"), "checkpoint": float("-inf")}
        text_end = float("-inf")
        painter.setFont(self._font)
        metrics = QFontMetricsF(self._font)
        for mark in self.marks:
            x = area.left() + (self.place(mark) - low) / (high - low) * area.width()
            if not area.left() - 1 <= x <= area.right() + 1 or x - taken[mark.kind] < APART:
                continue
            taken[mark.kind] = x
            if mark.kind == "checkpoint":
                _draw_tick(painter, x, area, colours)
                continue
            painter.setPen(hairline(colours.muted, (4.0, 4.0)))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            width = metrics.horizontalAdvance(mark.text)
            if area.height() >= LEAST_HEIGHT and x + 4 > text_end and x + 4 + width <= area.right():
                ground = QColor(colours.ground)
                ground.setAlpha(200)
                painter.fillRect(QRectF(x + 2, area.top(), width + 4, metrics.height() + 2), ground)
                painter.setPen(colours.muted)
                painter.drawText(QPointF(x + 4, area.top() + metrics.ascent() + 1), mark.text)
                text_end = x + 4 + width + 8


def _draw_tick(painter: QPainter, x: float, area: QRectF, colours: PlotColours) -> None:
    """A triangle that stands on the time axis."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colours.muted)
    foot = area.bottom()
    corners = [QPointF(x - TICK / 2, foot), QPointF(x + TICK / 2, foot), QPointF(x, foot - TICK)]
    painter.drawPolygon(QPolygonF(corners))
    painter.setBrush(Qt.BrushStyle.NoBrush)
