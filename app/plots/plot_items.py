"""Graphics items of a plot: all its curves as one raster and a few lines, evaluations, and what happened to the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPaintEngine, QPainter, QPixmap, QPolygonF

from app.plots import drawing
from app.plots.drawing import Area, Layer, Line, Points, Strokes, hairline
from app.plots.raster import Raster
from app.plots.scale import Scale
from app.plots.view_box import PlotView
from app.run_data.marks import Mark
from app.run_data.pyramid import Floats
from app.run_data.series import XAxis
from app.style.palette import PlotColours

RING_MARGIN: Final = 5.0
MOST_MARKS: Final = 200
MARKS_APART: Final = 5.0
TICK: Final = 5.0
# Lower plots show the lines without their texts.
LEAST_HEIGHT: Final = 90.0


class PlotItem(pyqtgraph.GraphicsObject):
    """A part of a plot that is drawn in the view's pixels."""

    def __init__(self, view: PlotView, parent: PlotView | None) -> None:
        super().__init__(parent)
        self._view = view

    def boundingRect(self) -> QRectF:
        rect: QRectF = self._view.rect()
        return rect

    def across(self, area: QRectF) -> Callable[[Any], Any]:
        """Return the map from places of the time axis to pixels of an area, for numbers and arrays."""
        low, high = self._view.viewRange()[0]
        return lambda places: area.left() + (places - low) / (high - low) * area.width()


class CurvesItem(PlotItem):
    """Layers in a view, drawn in its pixels: dense ones as a raster, which its transform would make slow.

    The picture is kept once it is drawn a second time without a change, as under a crosshair that moves.
    """

    def __init__(self, view: PlotView) -> None:
        super().__init__(view, view)
        self._layers: list[Layer] = []
        self._scale: Scale | None = None
        self._colours: PlotColours | None = None
        self._kept: tuple[object, QPixmap | None] | None = None
        self.rings = RingsItem(view)
        self.setZValue(-1)

    def show_layers(self, layers: list[Layer], scale: Scale | None, colours: PlotColours) -> None:
        self._layers = [layer for layer in layers if not isinstance(layer, Points)]
        self._scale, self._colours, self._kept = scale, colours, None
        points = [layer for layer in layers if isinstance(layer, Points)]
        self.rings.show_points(points if scale is not None else [], scale, colours)
        self.prepareGeometryChange()
        self.update()

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        scale, colours, area = self._scale, self._colours, self.boundingRect()
        if scale is None or colours is None or area.isEmpty():
            return
        ratio = painter.device().devicePixelRatioF()
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:
            self._draw(painter, area, scale, colours, ratio, as_lines=True)
            return
        # On whole pixels of the screen, also at 125 % and 150 %: an image between them would be blurred.
        corner = painter.deviceTransform().map(QPointF(0, 0))
        area = area.translated((round(corner.x()) - corner.x()) / ratio, (round(corner.y()) - corner.y()) / ratio)
        state = (area.width(), area.height(), ratio)
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, None)
            self._draw(painter, area, scale, colours, ratio)
            return
        if self._kept[1] is None:
            picture = QPixmap(math.ceil(area.width() * ratio), math.ceil(area.height() * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(colours.clear)
            inside = QPainter(picture)
            self._draw(inside, QRectF(0, 0, area.width(), area.height()), scale, colours, ratio)
            inside.end()
            self._kept = (state, picture)
        painter.drawPixmap(area.topLeft(), self._kept[1] or QPixmap())

    def _draw(
        self, painter: QPainter, area: QRectF, scale: Scale, colours: PlotColours, ratio: float, as_lines: bool = False
    ) -> None:
        """Draws dense strokes and areas as one raster, then the rest; `ratio`: pixels of the device in one of ours.

        `as_lines`: nothing as a raster, for a drawing that is enlarged.
        """
        low, high = self._view.viewRange()[0]
        span = high - low
        raster = Raster(max(1, int(area.width() * ratio)), max(1, int(area.height() * ratio)))
        lines: list[tuple[Line, Floats, Floats]] = []
        for layer in self._layers:
            x = (layer.x - low) / span * area.width()
            if isinstance(layer, Line):
                lines.append((layer, area.left() + x, scale.place(layer.y, area.top(), area.height())))
                continue
            is_area = isinstance(layer, Area)
            if not as_lines and (is_area or _is_dense(layer, area.width() * ratio / span)):
                bottom, top = (scale.place(part, 0, area.height() * ratio) for part in (layer.low, layer.high))
                (raster.area if is_area else raster.stroke)(x * ratio, top, bottom, layer.colour)
                continue
            lower = scale.place(layer.low, area.top(), area.height())
            upper = lower if layer.high is layer.low else scale.place(layer.high, area.top(), area.height())
            (drawing.fill_area if is_area else drawing.draw_strokes)(
                painter, area.left() + x, lower, upper, layer.colour
            )
        if not raster.is_empty:
            painter.drawImage(area.topLeft() + QPointF(0, raster.top / ratio), raster.image(ratio))
        for line in lines:
            drawing.draw_line(painter, *line)
        self._mark_outside(painter, area, scale, colours)

    def _mark_outside(self, painter: QPainter, area: QRectF, scale: Scale, colours: PlotColours) -> None:
        """Draws a short mark at the edge for each bin whose curve leaves the range."""
        across = self.across(area)
        painter.setPen(hairline(colours.muted, width=2.0))
        for layer in self._layers:
            if not isinstance(layer, Strokes):
                continue
            for outside, at_top in zip(scale.outside(layer.low, layer.high), (True, False), strict=True):
                places: Floats = across(layer.x[outside][:MOST_MARKS])
                y = area.top() + 1 if at_top else area.bottom() - 1
                for x in {round(place) for place in places.tolist()}:
                    painter.drawLine(QPointF(x, y), QPointF(x, y + (4 if at_top else -4)))


class RingsItem(PlotItem):
    """Evaluations. A ring at the view's edge stands half outside it, so it is not a child of the view, which clips."""

    def __init__(self, view: PlotView) -> None:
        super().__init__(view, None)
        self._points: list[Points] = []
        self._scale: Scale | None = None
        self._colours: PlotColours | None = None

    def show_points(self, points: list[Points], scale: Scale | None, colours: PlotColours) -> None:
        self.prepareGeometryChange()
        self._points, self._scale, self._colours = points, scale, colours
        self.setVisible(bool(points))
        self.update()

    def boundingRect(self) -> QRectF:
        rect: QRectF = self._view.geometry()
        return rect.adjusted(-RING_MARGIN, -RING_MARGIN, RING_MARGIN, RING_MARGIN)

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        if self._scale is None or self._colours is None:
            return
        area: QRectF = self._view.geometry()
        across = self.across(area)
        painter.setClipRect(self.boundingRect())
        for layer in self._points:
            y = self._scale.place(layer.y, area.top(), area.height())
            drawing.draw_points(painter, layer, across(layer.x), y, self._colours.ground, self._colours.thread)
            if layer.best is not None:
                at_x = across(layer.best[0])
                at_y = float(self._scale.place(np.array([layer.best[1]]), area.top(), area.height())[0])
                if area.left() <= at_x <= area.right() and area.top() <= at_y <= area.bottom():
                    drawing.draw_star(painter, QPointF(at_x, at_y), layer.colour, self._colours.ground)


def _is_dense(layer: Layer, pixels: float) -> bool:
    """True if there is a row for each pixel, or a bin of rows for at least every second; `pixels` are of one step."""
    if len(layer.x) < 2:
        return False
    return len(layer.x) >= (1.0 if layer.low is layer.high else 0.45) * float(layer.x[-1] - layer.x[0]) * pixels


class MarksItem(PlotItem):
    """Places where a run was resumed, and where it saved a checkpoint."""

    def __init__(self, view: PlotView) -> None:
        super().__init__(view, view)
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
        return mark.step if self._axis == "step" else mark.ts

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        colours, area = self._colours, self.boundingRect()
        if colours is None or not self.marks or area.isEmpty():
            return
        across = self.across(area)
        taken = {"resumed": float("-inf"), "checkpoint": float("-inf")}
        text_end = float("-inf")
        painter.setFont(self._font)
        metrics = QFontMetricsF(self._font)
        for mark in self.marks:
            x = float(across(self.place(mark)))
            if not area.left() - 1 <= x <= area.right() + 1 or x - taken[mark.kind] < MARKS_APART:
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
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colours.muted)
    foot = area.bottom()
    corners = [QPointF(x - TICK / 2, foot), QPointF(x + TICK / 2, foot), QPointF(x, foot - TICK)]
    painter.drawPolygon(QPolygonF(corners))
    painter.setBrush(Qt.BrushStyle.NoBrush)
