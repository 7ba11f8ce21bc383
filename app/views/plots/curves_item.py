"""Graphics item for all curves of a plot: a frame is one raster and a few lines."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPixmap

from app.run_data.pyramid import Floats
from app.views.plots import drawing
from app.views.plots.drawing import Area, Layer, Line, Points, Strokes, cut, in_turn, turns_of
from app.views.plots.raster import Raster
from app.views.plots.scale import Scale
from app.views.plots.view_box import PlotView
from app.views.style.palette import PlotColours

RING_MARGIN: Final = 5.0
MOST_MARKS: Final = 200


class CurvesItem(pyqtgraph.GraphicsObject):
    """Layers in a view, drawn in its pixels: dense ones as a raster, which its transform would make slow.

    What was drawn is kept once it is drawn a second time without a change, as under a crosshair that moves.
    """

    def __init__(self, view: PlotView) -> None:
        super().__init__(view)
        self._view = view
        self._layers: list[Layer] = []
        self._turns: dict[int, tuple[int, int]] = {}
        self._scale: Scale | None = None
        self._colours: PlotColours | None = None
        self._kept: tuple[object, QPixmap | None] | None = None
        self.rings = RingsItem(view)
        self.setZValue(-1)

    def show_layers(self, layers: list[Layer], scale: Scale | None, colours: PlotColours) -> None:
        self._layers = [layer for layer in layers if not isinstance(layer, Points)]
        self._turns = turns_of(self._layers)
        self._scale, self._colours, self._kept = scale, colours, None
        points = [layer for layer in layers if isinstance(layer, Points)]
        self.rings.show_points(points if scale is not None else [], scale, colours)
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        rect: QRectF = self._view.rect()
        return rect

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        """Draws the layers, or what was kept of them."""
        scale, colours, area = self._scale, self._colours, self.boundingRect()
        if scale is None or colours is None or area.isEmpty():
            return
        if self._exportOpts:
            self._draw(painter, area, scale, colours, 0.0)
            return
        ratio = painter.device().devicePixelRatioF()
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

    def _draw(self, painter: QPainter, area: QRectF, scale: Scale, colours: PlotColours, ratio: float) -> None:
        """Dense strokes and areas first, as one raster; then what a painter draws.

        Args:
            painter: Draws in the view's pixels.
            area: The view.
            scale: Its value range.
            colours: Of the palette.
            ratio: Pixels of the screen in one of ours; 0 draws no raster, as for a drawing that is scaled later.
        """
        low, high = self._view.viewRange()[0]
        span = high - low
        raster = Raster(max(1, int(area.width() * ratio)), max(1, int(area.height() * ratio)))
        lines: list[tuple[Line, Floats, Floats]] = []
        origin = -low / span * area.width()
        for place, whole in enumerate(self._layers):
            # A drawing knows no clipping: what lies outside is left out or stands at the edge.
            layer = whole if ratio else cut(whole, slice(*np.searchsorted(whole.x, (low, high + span * 1e-9))))
            x = (layer.x - low) / span * area.width()
            if isinstance(layer, Line):
                y = scale.place(layer.y, area.top(), area.height())
                lines.append((layer, area.left() + x, y if ratio else np.clip(y, area.top(), area.bottom())))
            elif isinstance(layer, Strokes | Area):
                is_area = isinstance(layer, Area)
                ends = (layer.low, layer.high)
                is_dense = ratio and (is_area or _is_dense(layer, area.width() * ratio / span))
                if place in self._turns:
                    x, low_end, high_end = in_turn(x, *ends, *self._turns[place], origin)
                    ends = (low_end, high_end)
                if is_dense:
                    bottom, top = (scale.place(part, 0, area.height() * ratio) for part in ends)
                    fill = raster.area if is_area else raster.stroke
                    fill(x * ratio, top, bottom, layer.colour)
                else:
                    draw = drawing.draw_area if is_area else drawing.draw_strokes
                    placed = (scale.place(part, area.top(), area.height()) for part in ends)
                    lower, upper = placed if ratio else (np.clip(y, area.top(), area.bottom()) for y in placed)
                    is_one = ends[0] is ends[1]
                    draw(painter, area.left() + x, lower, lower if is_one else upper, layer.colour)
        if not raster.is_empty:
            painter.drawImage(area.topLeft() + QPointF(0, raster.top / ratio), raster.image(ratio))
        drawing.draw_lines(painter, lines, origin)
        self._mark_outside(painter, area, scale, colours)

    def _mark_outside(self, painter: QPainter, area: QRectF, scale: Scale, colours: PlotColours) -> None:
        """A short mark at the edge for each bin whose curve leaves the range."""
        low, high = self._view.viewRange()[0]
        painter.setPen(drawing.hairline(colours.muted, width=2.0))
        for layer in self._layers:
            if not isinstance(layer, Strokes):
                continue
            for outside, at_top in zip(scale.outside(layer.low, layer.high), (True, False), strict=True):
                places = area.left() + (layer.x[outside][:MOST_MARKS] - low) / (high - low) * area.width()
                y = area.top() + 1 if at_top else area.bottom() - 1
                for x in {round(place) for place in places.tolist()}:
                    painter.drawLine(QPointF(x, y), QPointF(x, y + (4 if at_top else -4)))


class RingsItem(pyqtgraph.GraphicsObject):
    """Evaluations. A ring at the view's edge stands half outside it, so it is not a child of the view, which clips."""

    def __init__(self, view: PlotView) -> None:
        super().__init__()
        self._view = view
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
        """Draws those that are in view."""
        if self._scale is None or self._colours is None:
            return
        low, high = self._view.viewRange()[0]
        area: QRectF = self._view.geometry()
        if not self._exportOpts:
            painter.setClipRect(self.boundingRect())
        for layer in self._points:
            x = area.left() + (layer.x - low) / (high - low) * area.width()
            y = self._scale.place(layer.y, area.top(), area.height())
            if self._exportOpts:  # a drawing knows no clipping
                y = np.where(
                    (x > area.left() - 1) & (x < area.right() + 1) & (y > area.top() - 1) & (y < area.bottom() + 1),
                    y,
                    np.nan,
                )
            drawing.draw_points(painter, layer, x, y, self._colours.ground, self._colours.thread)
            if layer.best is not None:
                at_x = area.left() + (layer.best[0] - low) / (high - low) * area.width()
                at_y = float(self._scale.place(np.array([layer.best[1]]), area.top(), area.height())[0])
                if area.left() <= at_x <= area.right() and area.top() <= at_y <= area.bottom():
                    drawing.draw_star(painter, QPointF(at_x, at_y), layer.colour, self._colours.ground)


def _is_dense(layer: Strokes | Area, pixels: float) -> bool:
    """Whether there is a row for each pixel, or a bin of rows for at least every second.

    Args:
        layer: Strokes.
        pixels: Of the screen, for one step or second.
    """
    if len(layer.x) < 2:
        return False
    return len(layer.x) >= (1.0 if layer.low is layer.high else 0.45) * float(layer.x[-1] - layer.x[0]) * pixels
