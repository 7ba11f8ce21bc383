"""A low plot of one device over the run, without axes: eight of them cost less than one chart."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.run_data.marks import Mark
from app.run_data.pyramid import Floats
from app.views.plots import drawing
from app.views.plots.device_curves import DeviceCurves
from app.views.plots.drawing import Area, Layer, Line, hairline
from app.views.plots.raster import Raster
from app.views.plots.scale import Scale
from app.views.plots.source import Reading, View, WideLayers
from app.views.plots.time_axis import TimeAxis
from app.views.plots.view_box import WHEEL_PAN
from app.views.style.palette import faint, plot_colours

SCALE: Final = Scale(0.0, 100.0)
MOST_BINS: Final = 1000
LEAST_HEIGHT: Final = 8
LEAST_DRAG: Final = 5
# For each eighth of a degree times eight, as in pyqtgraph's views.
WHEEL_ZOOM: Final = 1.02
NOTE_HEIGHT: Final = 28


class DeviceStrip(QWidget):
    """Draws `DeviceCurves` over the time axis that all plots share.

    Gestures are a chart's: drag to zoom, wheel to zoom, Shift+wheel to move, double-click to fit. By keyboard the
    charts move the axis; a strip for each of eight devices would be eight more stops of Tab.

    Args:
        source: What is drawn.
        time_axis: Shared by all plots of a run.
        name: For screen readers.
        parent: Qt owner.

    Attributes:
        took_s: What processor time the last picture took.

    Signals:
        renewed: It shows something new, and with it the figures beside it.
    """

    renewed = Signal()

    def __init__(self, source: DeviceCurves, time_axis: TimeAxis, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = source
        self.time_axis = time_axis
        self.layers: list[Layer] = []
        self.took_s = 0.0
        self._wide = WideLayers()
        self._is_new = self._is_announced = True
        self._kept: tuple[object, QPixmap] | None = None
        self._pressed_at: float | None = None
        self._dragged_to = 0.0
        self.setMouseTracking(True)
        self.setMinimumHeight(LEAST_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(name)
        time_axis.moved.connect(self.update)
        time_axis.cursor_changed.connect(self.update)
        time_axis.axis_changed.connect(self.refit)

    # --- what the panel asks of every plot -----------------------------------------------------------------

    def refresh(self) -> None:
        self.expect_new()
        self.draw_new()

    def expect_new(self) -> None:
        """There are new points; they are drawn with the next picture."""
        self._is_new = self._is_announced = True

    def read_new(self) -> None:
        """There are new points, none of them near what is shown."""
        self._is_new = True
        self.renewed.emit()

    def draw_new(self) -> None:
        if self._is_announced:
            self._is_announced = False
            self.update()
            self.renewed.emit()

    def refit(self) -> None:
        """Other curves, another run, another axis."""
        self.refresh()

    def fit(self) -> None:
        self.time_axis.fit()

    def show_marks(self, _marks: Sequence[Mark]) -> None:
        """Marks stand in the charts."""

    def close_plot(self) -> None:
        self.time_axis.moved.disconnect(self.update)
        self.time_axis.cursor_changed.disconnect(self.update)
        self.time_axis.axis_changed.disconnect(self.refit)
        self.deleteLater()

    def view(self) -> View:
        return View(self.time_axis.axis, self.time_axis.low, self.time_axis.high, self.time_axis.cursor)

    def readings(self) -> list[Reading]:
        """The figures at the crosshair, or the newest ones while there is none."""
        return self.source.readings(self.view(), self.palette())

    def x_of(self, value: float) -> float:
        """The pixel of a position on the time axis."""
        return (value - self.time_axis.low) / self.time_axis.span * self.width()

    def value_at(self, x: float) -> float:
        """The position on the time axis at a pixel."""
        return self.time_axis.low + x / max(1, self.width()) * self.time_axis.span

    def sizeHint(self) -> QSize:
        return QSize(320, 34)

    # --- drawing -------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The strip, kept as a picture while only the crosshair moves, and the crosshair over it."""
        began = time.thread_time()
        ratio, palette = self.devicePixelRatioF(), self.palette()
        state = (self.time_axis.axis, self.time_axis.low, self.time_axis.high, self.size(), ratio, palette.cacheKey())
        if self._is_new or self._kept is None or self._kept[0] != state:
            self._kept = (state, self._picture(ratio, palette))
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._kept[1])
        cursor = self.time_axis.cursor
        if cursor is not None and self.time_axis.low <= cursor <= self.time_axis.high:
            painter.setPen(hairline(plot_colours(palette).muted))
            x = self.x_of(cursor)
            painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))
        if self._pressed_at is not None:
            colour = palette.color(QPalette.ColorRole.Highlight)
            painter.setPen(hairline(colour))
            colour.setAlpha(40)
            painter.setBrush(colour)
            painter.drawRect(QRectF(QPointF(self._pressed_at, 0), QPointF(self._dragged_to, self.height() - 1)))
        self.took_s = time.thread_time() - began

    def _picture(self, ratio: float, palette: QPalette) -> QPixmap:
        if self._is_new:
            self._wide.forget()
            self._is_new = False
        bins = min(MOST_BINS, max(16, int(self.width() * ratio)))
        self.layers = self._wide.of(self.source, self.view(), bins, palette, self.time_axis.extent)
        size = QSize(max(1, math.ceil(self.width() * ratio)), max(1, math.ceil(self.height() * ratio)))
        picture = QPixmap(size)
        picture.setDevicePixelRatio(ratio)
        colours = plot_colours(palette)
        picture.fill(faint(colours.text, palette, 0.06))  # how high 100 % is
        painter = QPainter(picture)
        self._draw_layers(painter, size, ratio)
        note = self.source.memory_axis()
        if note and self.height() >= NOTE_HEIGHT:
            self._draw_note(painter, note, colours.text, colours.ground)
        painter.end()
        return picture

    def _draw_layers(self, painter: QPainter, size: QSize, ratio: float) -> None:
        low, span = self.time_axis.low, self.time_axis.span
        raster, lines = Raster(size.width(), size.height()), list[tuple[Line, Floats, Floats]]()
        for layer in self.layers:
            share = (layer.x - low) / span
            if isinstance(layer, Area):
                top, bottom = (SCALE.place(part, 0, size.height()) for part in (layer.high, layer.low))
                raster.area(share * size.width(), np.clip(top, 0, size.height()), bottom, layer.colour)
            elif isinstance(layer, Line):
                lines.append((layer, share * self.width(), SCALE.place(np.clip(layer.y, 0, 99), 0, self.height())))
        if not raster.is_empty:
            painter.drawImage(QPointF(0, raster.top / ratio), raster.image(ratio))
        for line in lines:
            drawing.draw_line(painter, *line)

    def _draw_note(self, painter: QPainter, note: str, text: QColor, ground: QColor) -> None:
        metrics = QFontMetricsF(self.font())
        width = metrics.horizontalAdvance(note) + 8
        box = QRectF(self.width() - width - 2, 2, width, metrics.height())
        painter.setOpacity(0.85)
        painter.fillRect(box, ground)
        painter.setOpacity(1.0)
        painter.setPen(text)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, note)

    # --- what happens --------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed_at = self._dragged_to = event.position().x()
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = min(max(event.position().x(), 0.0), float(self.width()))
        if self._pressed_at is not None:
            self._dragged_to = x
            self.update()
        self.time_axis.set_cursor(self.value_at(x))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        start, self._pressed_at = self._pressed_at, None
        if start is None:
            event.ignore()
            return
        first, last = sorted((start, self._dragged_to))
        if last - first >= LEAST_DRAG:
            self.time_axis.show_range(self.value_at(first), self.value_at(last))
        self.update()

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self._pressed_at = None
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta()
        if turned.x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.time_axis.pan(-(turned.x() or turned.y()) / WHEEL_PAN)
        else:
            self.time_axis.zoom(WHEEL_ZOOM ** (-turned.y() / 8), self.value_at(event.position().x()))
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self.time_axis.set_cursor(None)
        super().leaveEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange):
            self._is_new = True
            self.update()
        super().changeEvent(event)
