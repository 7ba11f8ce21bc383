"""The axes of a plot: pyqtgraph's, with our labels, drawn straight to the painter."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from app.plots import ticks
from app.plots.drawing import hairline
from app.plots.time_axis import TimeAxis
from app.style.palette import PlotColours

TICK_GAP: Final = 6
# Labels of values stand this many lines apart, also in a low plot.
LINES_APART: Final = 1.3
# Of a value's label; one that is longer is written with a power of ten.
MOST_DIGITS: Final = 7
LABEL_ROOM: Final = 1.6
# Labels of time stand at least this far apart: widths of the longest, and pixels, so that a wide plot is calm.
LEAST_APART: Final = 64
# The same in widths, where otherwise only one label would be left.
PAIR_ROOM: Final = 1.15


class PlotAxis(pyqtgraph.AxisItem):
    """An axis whose ticks cross the plot, as a grid under the curves.

    `AxisItem` records what it draws in a QPicture and plays it: 19 ms a frame with a grid, against less than one.
    """

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self.is_shown = False
        self.colours: PlotColours | None = None
        self.setGrid(255)

    def look(self, font: QFont, colours: PlotColours) -> None:
        self.setTickFont(font)
        self.colours = colours
        self.update()

    def show_ticks(self, on: bool) -> None:
        if on != self.is_shown:
            self.is_shown = on
            self.update()

    def labelled(self, length: float) -> list[tuple[float, str]]:
        """Return the ticks on `length` pixels with their labels."""
        low, high = self.range
        spacing, values = self.tickValues(low, high, length)[0]
        return list(zip(values, self.tickStrings(values, 1.0, spacing), strict=True))

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        levels = self.tickSpacing(low, high, size)
        spacing = levels[0][0] if levels else 0.0
        return [(spacing, ticks.multiples(low, high, spacing))]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Make distinct labels; kept, because while a view moves they are the same from frame to frame."""
        return list(_labels(tuple(value * scale for value in values), spacing * scale))

    def paint(self, painter: QPainter, _option: object, _widget: object = None) -> None:
        view = self.linkedView()
        if self.colours is None or view is None or not self.is_shown:
            return
        area = self.mapRectFromItem(view, view.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setFont(self.style["tickFont"])
        metrics = QFontMetricsF(painter.font())
        found = self.labelled(area.width() if self.orientation == "bottom" else area.height())
        painter.setPen(hairline(self.colours.grid))
        painter.drawLines([self._line(area, value) for value, _ in found])
        painter.setPen(self.colours.muted)
        for value, text in found:
            self._draw_label(painter, area, metrics, value, text)
        if self.orientation == "bottom":
            painter.setPen(hairline(self.colours.frame))
            painter.drawLine(area.bottomLeft(), area.bottomRight())

    def _line(self, area: QRectF, value: float) -> QLineF:
        raise NotImplementedError

    def _draw_label(self, painter: QPainter, area: QRectF, metrics: QFontMetricsF, value: float, text: str) -> None:
        raise NotImplementedError


class ValueAxis(PlotAxis):
    """The vertical axis: values, a logarithm of them, or seconds and milliseconds.

    Attributes:
        unit: "s" for seconds, which are shown as milliseconds where that is shorter.
    """

    def __init__(self) -> None:
        super().__init__("left")
        self.unit = ""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        if not self.logMode:
            height = QFontMetricsF(self.style["tickFont"]).height()
            least = (high - low) * LINES_APART * height / max(size, 1.0)
            (spacing, values), *_ = super().tickValues(low, high, size)
            if spacing >= least:
                return [(spacing, values)]
            return [(ticks.nice_step(least), ticks.multiples(low, high, ticks.nice_step(least)))]
        if high - low < 1:
            spacing, values = super().tickValues(10**low, 10**high, size)[0]
        else:
            most = max(2, int(size / (2.2 * QFontMetricsF(self.style["tickFont"]).height())))
            spacing, values = 0.0, ticks.log_values(10**low, 10**high, most)
        return [(spacing, [value for value in values if value > 0])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if self.logMode and not spacing:
            return [ticks.short(value) for value in values]
        if self.unit != "s":
            texts = super().tickStrings(values, scale, spacing)
            is_long = any(len(text.lstrip("-")) > MOST_DIGITS for text in texts)
            return ticks.scientific([value * scale for value in values], spacing * scale) if is_long else texts
        factor, unit = (1e3, "ms") if self.range[1] < 1 else (1.0, "s")
        return [f"{text} {unit}" for text in _labels(tuple(value * factor for value in values), spacing * factor)]

    def _y(self, area: QRectF, value: float) -> float:
        low, high = self.range
        place = math.log10(value) if self.logMode else value
        y: float = area.bottom() - (place - low) / (high - low) * area.height()
        return y

    def _line(self, area: QRectF, value: float) -> QLineF:
        y = self._y(area, value)
        return QLineF(area.left(), y, area.right(), y)

    def _draw_label(self, painter: QPainter, area: QRectF, metrics: QFontMetricsF, value: float, text: str) -> None:
        height = metrics.height()
        own = self.boundingRect()
        top = min(max(self._y(area, value) - height / 2, own.top() - 2), own.bottom() - height + 2)
        box = QRectF(own.left(), top, area.left() - own.left() - TICK_GAP + 1, height)
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)


class TimeTicks(PlotAxis):
    """The horizontal axis: whole steps, or time since the run's beginning."""

    def __init__(self, time_axis: TimeAxis) -> None:
        super().__init__("bottom")
        self._time_axis = time_axis

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """Return the closest steps, seconds, minutes, hours or days whose labels have room, two where two fit."""
        metrics = QFontMetricsF(self.style["tickFont"])
        one_pixel = (high - low) / max(size, 1.0)
        pair: tuple[float, list[float]] | None = None
        spacing, values = self._ticks(low, high, LABEL_ROOM * metrics.horizontalAdvance("000") * one_pixel)
        while len(values) > 1:
            longest = max(self.tickStrings(values, 1.0, spacing), key=len)  # digits have one width
            widest = metrics.horizontalAdvance(longest) * one_pixel
            if spacing >= max(LABEL_ROOM * widest, LEAST_APART * one_pixel):
                return [(spacing, values)]
            pair = (spacing, values) if spacing >= PAIR_ROOM * widest else None
            spacing, values = self._ticks(low, high, 1.01 * spacing)
        return [pair or (spacing, values)]

    def _ticks(self, low: float, high: float, least: float) -> tuple[float, list[float]]:
        """Return ticks at least `least` apart, and their distance."""
        axis = self._time_axis
        if axis.counter is not None:
            steps, counts = axis.counter
            first, last = np.interp((low, high), steps, counts)
            slope = max(1e-12, last - first) / (high - low)
            spacing = ticks.nice_step(least * slope)
            spacing = spacing if axis.name == "epoch" else max(1.0, spacing)
            places = np.interp(ticks.multiples(first, last, spacing), counts, steps)
            return spacing / slope, places.tolist()
        if axis.axis == "step":
            spacing = ticks.nice_step(least) if axis.name == "epoch" else max(1.0, ticks.nice_step(least))
            return spacing, ticks.multiples(low, high, spacing)
        if axis.name == "clock":
            spacing, ahead = ticks.spacing_of_time(least), time.localtime(low).tm_gmtoff
            return spacing, [value - ahead for value in ticks.multiples(low + ahead, high + ahead, spacing)]
        start, spacing = self._time_axis.extent[0], ticks.spacing_of_time(least)
        return spacing, [start + value for value in ticks.multiples(low - start, high - start, spacing)]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """Label steps, tokens or epochs; time since the run's beginning, or of day."""
        axis = self._time_axis
        if axis.counter is not None:
            low, high = np.interp((axis.low, axis.high), *axis.counter)
            apart = ticks.nice_step(0.999 * max(1e-12, spacing * (high - low) / axis.span))
            counts = np.interp(values, *axis.counter).tolist()
            return super().tickStrings([round(n / apart) * apart for n in counts], scale, apart)
        if axis.name == "clock":
            return [ticks.time_of_day(value, spacing) for value in values]
        if axis.axis == "step":
            return super().tickStrings(values, scale, spacing)
        return [ticks.clock(value - self._time_axis.extent[0], spacing) for value in values]

    def _x(self, area: QRectF, value: float) -> float:
        low, high = self.range
        x: float = area.left() + (value - low) / (high - low) * area.width()
        return x

    def _line(self, area: QRectF, value: float) -> QLineF:
        x = self._x(area, value)
        return QLineF(x, area.top(), x, area.bottom())

    def _draw_label(self, painter: QPainter, area: QRectF, metrics: QFontMetricsF, value: float, text: str) -> None:
        width = metrics.horizontalAdvance(text)
        left = min(max(self._x(area, value) - width / 2, area.left()), area.right() - width)
        painter.drawText(QPointF(left, area.bottom() + 2 + metrics.ascent()), text)


@lru_cache(maxsize=256)
def _labels(values: tuple[float, ...], spacing: float) -> tuple[str, ...]:
    return tuple(ticks.labels(values, spacing)) if values else ()
