"""The picture of one plot: a grid and layers over the shared time axis, kept until something changes."""

from __future__ import annotations

import math
import time
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPalette, QPixmap, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.run_data.pyramid import Floats
from app.views.plots import drawing
from app.views.plots.drawing import Area, Layer, Line, Points, Strokes
from app.views.plots.raster import Raster
from app.views.plots.scale import Scale, fitting
from app.views.plots.source import PlotSource, Reading, View
from app.views.plots.ticks import Tick, linear_ticks, log_ticks, time_ticks, whole_ticks
from app.views.plots.time_axis import TimeAxis
from app.views.plots.wide_layers import WideLayers
from app.views.style.fonts import tabular
from app.views.style.palette import PlotColours, plot_colours

WIDEST_LABEL: Final = "00.00 k"
TICK_GAP: Final = 6
MOST_BINS: Final = 2000


class PlotCanvas(QWidget):
    """Draws a `PlotSource`. `Chart` adds the crosshair and the gestures.

    `took_s` says what the last picture and its readout cost.

    Args:
        source: What is drawn.
        time_axis: Shared by all plots of a run.
        name: For screen readers.
        parent: Qt owner.

    Signals:
        redrawn: The picture is new.
        renewed: So is what it shows, and with it the readout.
    """

    redrawn = Signal()
    renewed = Signal()

    def __init__(self, source: PlotSource, time_axis: TimeAxis, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = source
        self.time_axis = time_axis
        self.shows_time_labels = True
        self.right_inset = 8.0
        self.empty_text = ""
        self.took_s = 0.0
        self._scale: Scale | None = None
        self._chosen_scale: Scale | None = None
        self._keep_scale = False
        self._log = False
        self._picture: QPixmap | None = None
        self._edges: tuple[float, float] | None = None
        self._wide = WideLayers()
        self._is_new = True
        self._drawn: list[Layer] = []
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        time_axis.range_changed.connect(self._on_range_changed)
        time_axis.axis_changed.connect(self.refit)

    # --- from outside ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """New points: draw them. What a person looks at does not move: a part that was zoomed keeps its scale."""
        self._keep_scale = not self.time_axis.is_fitted
        self._renew()

    def refit(self) -> None:
        """Other curves, another run, another axis: everything is measured again."""
        self._chosen_scale = None
        self._keep_scale = False
        self._renew()

    def set_log(self, on: bool) -> None:
        """A logarithmic value axis; values that are not positive are gaps."""
        self._log = on
        self.refit()

    def fit(self) -> None:
        """Shows all of the run and all values."""
        self._chosen_scale = None
        self.time_axis.fit()
        self.refit()

    def view(self) -> View:
        """What the time axis shows just now."""
        return View(self.time_axis.axis, self.time_axis.low, self.time_axis.high, self.time_axis.cursor)

    def readings(self) -> list[Reading]:
        """The values at the crosshair, or the newest ones while there is none."""
        return self.source.readings(self.view(), self.palette())

    @property
    def scale(self) -> Scale | None:
        """The value range that is shown; None while nothing is drawn."""
        self._ensure_picture()
        return self._scale

    def sizeHint(self) -> QSize:
        """A plot takes what it gets."""
        return QSize(480, 160)

    def minimumSizeHint(self) -> QSize:
        """Enough for two tick labels."""
        return QSize(200, 56)

    def plot_area(self) -> QRectF:
        """Where curves are drawn, in widget pixels. Its left edge is the same in every plot."""
        left, labels = self._label_room()
        bottom = 2 + (labels if self.shows_time_labels else 0)
        return QRectF(left, 4, max(1.0, self.width() - left - self.right_inset), max(1.0, self.height() - 4 - bottom))

    def labels_height(self) -> int:
        """What the time labels take."""
        return int(self._label_room()[1])

    def _label_room(self) -> tuple[float, float]:
        """What the labels take on the left and below; measured once for a font."""
        if self._edges is None:
            widest = QFontMetricsF(tabular(self.font())).horizontalAdvance(WIDEST_LABEL)
            self._edges = (math.ceil(widest) + TICK_GAP, math.ceil(QFontMetricsF(self.font()).height()))
        return self._edges

    # --- drawing -----------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Puts the picture on the screen."""
        self._ensure_picture()
        painter = QPainter(self)
        if self._picture is not None:
            painter.drawPixmap(0, 0, self._picture)
        self._paint_over(painter, self.plot_area())

    def _paint_over(self, painter: QPainter, area: QRectF) -> None:
        """What changes more often than the picture."""

    def x_of(self, value: float) -> float:
        """The pixel of a position on the time axis."""
        return self._x_in(self.plot_area(), value)

    def _x_in(self, area: QRectF, value: float) -> float:
        return area.left() + (value - self.time_axis.low) / self.time_axis.span * area.width()

    def value_at(self, x: float) -> float:
        """The position on the time axis at a pixel."""
        area = self.plot_area()
        return self.time_axis.low + (x - area.left()) / area.width() * self.time_axis.span

    def _ensure_picture(self) -> None:
        ratio = self.devicePixelRatioF()
        if self._picture is not None and self._picture.devicePixelRatio() == ratio:
            return
        began = time.perf_counter()
        # Rounded up: at 125 % and 150 % a widget may end within a pixel, and nothing else paints that one.
        picture = QPixmap(math.ceil(self.width() * ratio), math.ceil(self.height() * ratio))
        picture.setDevicePixelRatio(ratio)
        colours = plot_colours(self.palette())
        picture.fill(self.palette().color(QPalette.ColorRole.Window))
        area = self.plot_area()
        bins, extent = self._bins(area, ratio), self.time_axis.extent
        self._drawn = self._wide.of(self.source, self.view(), bins, self.palette(), extent)
        self._measure()
        painter = QPainter(picture)
        painter.setFont(tabular(self.font()))
        painter.fillRect(area, colours.ground)
        if self._scale is None:
            self._draw_empty(painter, area, colours)
        else:
            self._draw_grid(painter, area, colours, self._scale)
            painter.setClipRect(area)
            self._draw_layers(painter, area, colours, self._scale, ratio)
            self._mark_outside(painter, area, self._scale, colours)
        painter.end()
        self._picture = picture
        self.redrawn.emit()
        if self._is_new:
            self._is_new = False
            self.renewed.emit()
        self.took_s = time.perf_counter() - began

    @staticmethod
    def _bins(area: QRectF, ratio: float) -> int:
        """One to two bins a pixel, so that strokes have no gaps; two points a bin, so never more than 4,000."""
        return min(MOST_BINS, max(16, int(2 * area.width() * ratio)))

    def _measure(self) -> None:
        """The value range: a person's, else the one that was (while they look at a part), else what fits."""
        if self._chosen_scale is not None:
            self._scale = self._chosen_scale
        elif not (self._keep_scale and self._scale is not None):
            seen = [values for layer in self._drawn for values in self._seen_of(layer)]
            self._scale = self.source.fixed_scale or fitting(seen, log=self._log, floor=self.source.floor)

    def _seen_of(self, layer: Layer) -> list[Floats]:
        first = int(np.searchsorted(layer.x, self.time_axis.low, "left"))
        last = int(np.searchsorted(layer.x, self.time_axis.high, "right"))
        inside = slice(first, last) if first < last else slice(None)
        if isinstance(layer, Strokes | Area):
            return [layer.low[inside], layer.high[inside]]
        return [layer.y[inside]]

    def _draw_layers(self, painter: QPainter, area: QRectF, colours: PlotColours, scale: Scale, ratio: float) -> None:
        """Dense strokes and areas first, as one raster; then what a painter draws."""
        raster = Raster(max(1, int(area.width() * ratio)), max(1, int(area.height() * ratio)))
        rest: list[Layer] = []
        for layer in self._drawn:
            if isinstance(layer, Area) or (isinstance(layer, Strokes) and self._is_dense(layer, area, ratio)):
                x = (layer.x - self.time_axis.low) / self.time_axis.span * area.width() * ratio
                top, bottom = (scale.place(values, 0, area.height() * ratio) for values in (layer.high, layer.low))
                (raster.area if isinstance(layer, Area) else raster.stroke)(x, top, bottom, layer.colour)
            else:
                rest.append(layer)
        if not raster.is_empty:
            painter.drawImage(area.topLeft() + QPointF(0, raster.top / ratio), raster.image(ratio))
        for layer in rest:
            self._draw_layer(painter, layer, area, scale, colours)

    def _is_dense(self, layer: Strokes, area: QRectF, ratio: float) -> bool:
        """Whether there is a row for each pixel, or a bin of rows for at least every second."""
        if len(layer.x) < 2:
            return False
        pixels = (layer.x[-1] - layer.x[0]) / self.time_axis.span * area.width() * ratio
        return len(layer.x) >= (1.0 if layer.low is layer.high else 0.45) * float(pixels)

    def _draw_layer(self, painter: QPainter, layer: Layer, area: QRectF, scale: Scale, colours: PlotColours) -> None:
        x = area.left() + (layer.x - self.time_axis.low) / self.time_axis.span * area.width()
        top, height = area.top(), area.height()
        if isinstance(layer, Strokes):
            low, high = scale.place(layer.low, top, height), scale.place(layer.high, top, height)
            drawing.draw_strokes(painter, x, low, high, layer.colour)
        elif isinstance(layer, Line):
            drawing.draw_line(painter, layer, x, scale.place(layer.y, top, height))
        elif isinstance(layer, Points):
            y = scale.place(layer.y, top, height)
            drawing.draw_points(painter, layer, x, y, colours.ground, colours.thread)

    def _draw_grid(self, painter: QPainter, area: QRectF, colours: PlotColours, scale: Scale) -> None:
        metrics = QFontMetricsF(painter.font())
        line_height = metrics.height()
        for value, label in _y_ticks(scale, max(2, int(area.height() / (2.2 * line_height))), self.source.unit):
            y = float(scale.place(np.array([value]), area.top(), area.height())[0])
            if not area.top() - 0.5 <= y <= area.bottom() + 0.5:
                continue
            painter.setPen(drawing.hairline(colours.grid))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(colours.muted)
            text_top = min(max(y - line_height / 2, 0.0), self.height() - line_height)
            box = QRectF(0, text_top, area.left() - TICK_GAP + 1, line_height)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, label)
        for value, label in self._x_ticks(area, metrics):
            x = self._x_in(area, value)
            painter.setPen(drawing.hairline(colours.grid))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            if self.shows_time_labels:
                self._draw_x_label(painter, area, metrics, x, label, colours)
        painter.setPen(drawing.hairline(colours.frame))
        painter.drawLine(area.bottomLeft(), area.bottomRight())

    def _x_ticks(self, area: QRectF, metrics: QFontMetricsF) -> list[Tick]:
        most = max(2, int(area.width() / (1.6 * metrics.horizontalAdvance("0,000,000"))))
        axis = self.time_axis
        if axis.axis == "step":
            return whole_ticks(axis.low, axis.high, most)
        start = axis.extent[0]
        return [(value + start, label) for value, label in time_ticks(axis.low - start, axis.high - start, most)]

    def _draw_x_label(
        self, painter: QPainter, area: QRectF, metrics: QFontMetricsF, x: float, label: str, colours: PlotColours
    ) -> None:
        width = metrics.horizontalAdvance(label)
        left = min(max(x - width / 2, area.left()), self.width() - width)
        painter.setPen(colours.muted)
        painter.drawText(QPointF(left, area.bottom() + 2 + metrics.ascent()), label)

    def _draw_empty(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        painter.setPen(colours.muted)
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(area.adjusted(8, 0, -8, 0), flags, self.empty_text)

    def _mark_outside(self, painter: QPainter, area: QRectF, scale: Scale, colours: PlotColours) -> None:
        """A short mark at the edge for each bin whose curve leaves the range."""
        marks: list[tuple[Floats, bool]] = []
        for layer in self._drawn:
            if isinstance(layer, Strokes):
                above, below = scale.outside(layer.low, layer.high)
                marks += [(layer.x[above], True), (layer.x[below], False)]
        painter.setPen(drawing.hairline(colours.muted, width=2.0))
        for positions, at_top in marks:
            for x in {round(self._x_in(area, position)) for position in positions[:200].tolist()}:
                y = area.top() + 1 if at_top else area.bottom() - 1
                painter.drawLine(QPointF(x, y), QPointF(x, y + (4 if at_top else -4)))

    def _renew(self) -> None:
        """Other points, or other colours: nothing that was made of them is of use."""
        self._is_new = True
        self._wide.forget()
        self._discard_picture()

    def _discard_picture(self) -> None:
        self._picture = None
        self.update()

    def _on_range_changed(self, by_person: bool) -> None:
        if by_person:
            self._keep_scale = False
        self._discard_picture()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A new size needs a new picture, and another place for what stands in it."""
        self._renew()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """So do other colours and fonts."""
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._edges = None
            self._renew()
        super().changeEvent(event)


def _y_ticks(scale: Scale, most: int, unit: str) -> list[Tick]:
    if scale.log:
        return log_ticks(10**scale.low, 10**scale.high, most)
    if unit == "s":
        factor, unit = (1e3, "ms") if scale.high < 1 else (1.0, "s")
        ticks = linear_ticks(scale.low * factor, scale.high * factor, most)
        return [(value / factor, f"{label} {unit}") for value, label in ticks]
    return linear_ticks(scale.low, scale.high, most)
