"""One plot: its axes, curves and marks, drawn when points or the view change."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHideEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy

from app.plots.axes import TICK_GAP, TimeTicks, ValueAxis
from app.plots.drawing import Layer, hairline
from app.plots.plot_items import CurvesItem, MarksItem
from app.plots.scale import Scale, fitting
from app.plots.source import PlotSource, Reading, View, WideLayers
from app.plots.time_axis import TimeAxis
from app.plots.view_box import PlotView
from app.run_data.marks import Mark
from app.run_data.pyramid import Floats
from app.style.fonts import tabular
from app.style.palette import plot_colours

WIDEST_LABEL: Final = "0.00000"
TOP_MARGIN: Final = 4
RIGHT_INSET: Final = 8.0
MOST_BINS: Final = 2000
NO_VALUES: Final = "No finite values"

pyqtgraph.setConfigOptions(mouseRateLimit=0)  # else the end of a quick drag is lost


class PlotCanvas(pyqtgraph.GraphicsView):
    """Draws a `PlotSource` over a time axis that all plots of a run share.

    Not a `PlotWidget`: its `PlotItem` makes two more axes and a menu of some thirty widgets, half of a chart's time.
    `took_s` says what processor time the last picture and its readout took.
    """

    redrawn = Signal()
    renewed = Signal()
    log_changed = Signal(bool)

    def __init__(self, source: PlotSource, time_axis: TimeAxis, name: str) -> None:
        self.view_box = PlotView()
        self._value_axis, self._time_ticks = ValueAxis(), TimeTicks(time_axis)
        super().__init__(background=None)
        self.source = source
        self.time_axis = time_axis
        self.empty_text = ""
        self.took_s = self._made_in_s = 0.0
        self.layers: list[Layer] = []
        self._marks: Sequence[Mark] = ()
        self._scale: Scale | None = None
        self._chosen_scale: Scale | None = None
        self._keep_scale = False
        self._log = False
        self._wide = WideLayers()
        self._is_new = self._is_stale = True
        self._make_items()
        self.set_right_inset(RIGHT_INSET)
        self.setAccessibleName(name)
        self._dress()
        time_axis.link(self.view_box)
        time_axis.axis_changed.connect(self.refit)
        self.view_box.sigXRangeChanged.connect(self._on_range_changed)
        self.view_box.sigRangeChangedManually.connect(self._on_moved_by_hand)

    def _make_items(self) -> None:
        # Of one colour: a picture of it is memory for nothing.
        self.setCacheMode(self.CacheModeFlag.CacheNone)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.centralLayout.setSpacing(0)
        self.centralLayout.addItem(self.view_box, 1, 1)
        for axis, row, column in ((self._value_axis, 1, 0), (self._time_ticks, 2, 1)):
            axis.linkToView(self.view_box)
            axis.setZValue(-1000)
            self.centralLayout.addItem(axis, row, column)
        self.curves = CurvesItem(self.view_box)
        self.curves.rings.setParentItem(self.centralWidget)
        self.marks = MarksItem(self.view_box)
        self.cross = pyqtgraph.InfiniteLine(angle=90, movable=False)
        self.cross.hide()
        self.view_box.addItem(self.cross, ignoreBounds=True)

    # --- from outside ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draws new points. The shown part does not move: one that was zoomed keeps its scale."""
        self.expect_new()
        self.draw_new()

    def expect_new(self) -> None:
        """Announces new points; they are drawn with the next change of range, or by `draw_new`."""
        self._keep_scale = not self.time_axis.is_fitted
        self._is_new = self._is_stale = True

    def read_new(self) -> None:
        """Takes new points that are not near the shown part: only the newest values change."""
        self._is_new = True
        self.renewed.emit()

    def draw_new(self) -> None:
        """Draws the points that were announced, unless they are drawn already."""
        if self._is_stale:
            self._draw()

    def show_marks(self, marks: Sequence[Mark]) -> None:
        self._marks = marks
        self._place_marks()

    def _place_marks(self) -> None:
        self.marks.show_marks(self._marks, self.time_axis.axis, plot_colours(self.palette()), tabular(self.font()))

    def refit(self) -> None:
        """Measures everything again: other curves, another run, another axis."""
        self._chosen_scale = None
        self._keep_scale = False
        self._is_new = True
        self._draw()

    def set_log(self, on: bool) -> None:
        """Switches the logarithmic value axis; values that are not positive are gaps."""
        if on != self._log:
            self._log = on
            self._value_axis.setLogMode(on)
            self.refit()
            self.log_changed.emit(on)

    @property
    def is_log(self) -> bool:
        return self._log

    def fit(self) -> None:
        self._chosen_scale = None
        self.time_axis.fit()
        self.refit()

    def show_values(self, low: float, high: float) -> None:
        """Shows a person's value range until the zoom is reset; both ends are values, also on a logarithmic axis."""
        ends = (math.log10(low), math.log10(high)) if self._log else (low, high)
        self._chosen_scale = Scale(*ends, self._log)
        self._draw()

    def close_plot(self) -> None:
        self.time_axis.unlink(self.view_box)
        self.deleteLater()

    def view(self) -> View:
        axis = self.time_axis
        return View(axis.axis, axis.low, axis.high, axis.cursor, axis.name)

    def readings(self) -> list[Reading]:
        """Values at the crosshair, or the newest ones without it."""
        return self.source.readings(self.view(), self.palette(), self.layers)

    def legend(self) -> list[Reading]:
        """`readings` with the hidden curves, so that they can be shown again."""
        return self.source.legend(self.view(), self.palette(), self.layers)

    @property
    def scale(self) -> Scale | None:
        if self._is_stale:
            self._draw(even_hidden=True)
        return self._scale

    def set_right_inset(self, pixels: float) -> None:
        """Leaves room at the right, so that plots above each other end at the same place."""
        self.centralLayout.setContentsMargins(0, TOP_MARGIN, pixels, 0)

    def sizeHint(self) -> QSize:
        return QSize(480, 160)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 24)

    def plot_area(self) -> QRectF:
        """Where curves are drawn, in widget pixels. Its left edge is the same in every plot."""
        self.centralLayout.activate()
        area: QRectF = self.view_box.sceneBoundingRect()
        return area

    def x_of(self, value: float) -> float:
        area = self.plot_area()
        return area.left() + (value - self.time_axis.low) / self.time_axis.span * area.width()

    def value_at(self, x: float) -> float:
        area = self.plot_area()
        return self.time_axis.low + (x - area.left()) / area.width() * self.time_axis.span

    # --- drawing -----------------------------------------------------------------------------------------

    def _dress(self) -> None:
        font, colours = tabular(self.font()), plot_colours(self.palette())
        self.setBackground(colours.ground)
        self.cross.setPen(hairline(colours.muted))
        for axis in (self._value_axis, self._time_ticks):
            axis.look(font, colours)
        self._value_axis.setWidth(math.ceil(QFontMetricsF(font).horizontalAdvance(WIDEST_LABEL)) + TICK_GAP)
        self._time_ticks.setHeight(2 + math.ceil(QFontMetricsF(font).height()))

    def _draw(self, even_hidden: bool = False) -> None:
        """Makes the picture; a hidden plot does so when it is shown."""
        if not even_hidden and self.viewport().visibleRegion().isEmpty():  # hidden, or scrolled out of sight
            self._is_stale = True
            return
        began = time.thread_time()
        self._is_stale = False
        if self._is_new:
            self._wide.forget()
            self._place_marks()
        bins = min(MOST_BINS, max(16, int(2 * self.plot_area().width() * self.devicePixelRatioF())))
        self.layers = self._wide.of(self.source, self.view(), bins, self.palette(), self.time_axis.extent)
        self._measure()
        self._keep_scale = False
        for axis in (self._value_axis, self._time_ticks):
            axis.show_ticks(self._scale is not None)
        self._value_axis.unit = self.source.unit
        if self._scale is not None:
            self.view_box.show_values(self._scale.low, self._scale.high)
        self.curves.show_layers(self.layers, self._scale, plot_colours(self.palette()))
        # What changed asks to be painted itself: asking for the viewport, too, would have most of it painted twice.
        self.view_box.updateMatrix()
        self.redrawn.emit()
        if self._is_new:
            self._is_new = False
            self.renewed.emit()
        self._made_in_s = self.took_s = time.thread_time() - began

    def _measure(self) -> None:
        """Takes a person's value range, else the one before (while a part is looked at), else a fitting one."""
        if self._chosen_scale is not None:
            self._scale = self._chosen_scale
        elif not (self._keep_scale and self._scale is not None):
            self._scale = self.source.fixed_scale or fitting(self._seen(), log=self._log, floor=self.source.floor)

    def _seen(self) -> list[Floats]:
        found: list[Floats] = []
        for layer in self.layers:
            first = int(np.searchsorted(layer.x, self.time_axis.low, "left"))
            last = int(np.searchsorted(layer.x, self.time_axis.high, "right"))
            inside = slice(first, last) if first < last else slice(None)
            found.append(layer.low[inside])
            if layer.high is not layer.low:
                found.append(layer.high[inside])
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._is_stale:
            self._draw(even_hidden=True)
        began = time.thread_time()
        super().paintEvent(event)
        self.took_s = self._made_in_s + time.thread_time() - began

    def reason_empty(self) -> str:
        """Why nothing is drawn; not known before there is a step: devices are sampled earlier."""
        is_known = self.empty_text != NO_VALUES or any(np.isfinite(layer.x).any() for layer in self.layers)
        return self.empty_text if self._scale is None and is_known else ""

    def drawForeground(self, painter: QPainter, _rect: QRectF) -> None:
        area = self.plot_area()
        if text := self.reason_empty():
            painter.setPen(plot_colours(self.palette()).muted)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(area.adjusted(8, 0, -8, 0), flags, text)
        if self.hasFocus():
            painter.setPen(hairline(self.palette().color(QPalette.ColorRole.Highlight)))
            painter.drawRect(area.adjusted(-1, -1, 1, 1))

    # --- what happens ------------------------------------------------------------------------------------

    def _on_range_changed(self, *_: object) -> None:
        self._draw()

    def _on_moved_by_hand(self, moved: tuple[bool, bool]) -> None:
        if moved[1] and self._scale is not None:
            low, high = self.view_box.viewRange()[1]
            fit = fitting(self._seen(), log=self._log)
            is_empty = fit is not None and (fit.low > high or fit.high < low)  # a rectangle beside all curves
            self._chosen_scale = None if is_empty else Scale(low, high, self._log)
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.time_axis.link(self.view_box)
        self._is_stale = True
        self.viewport().update()

    def hideEvent(self, event: QHideEvent) -> None:
        self.time_axis.unlink(self.view_box)
        super().hideEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event is not None and hasattr(self, "curves"):  # pyqtgraph calls this while it is made
            self._is_new = True
            self._draw()

    def changeEvent(self, event: QEvent) -> None:
        looks = (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange)
        if event.type() in looks and hasattr(self, "curves"):
            self._dress()
            self._is_new = True
            self._draw()
        super().changeEvent(event)
