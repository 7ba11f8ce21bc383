"""Layers of a plot, and arrays onto a painter, quickly: cosmetic pens, opaque colours, no Python loop over points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from app.run_data.pyramid import Floats

FAR: Final = 1e6
APART: Final = 0.3
RING_ROOM: Final = 7.0
STAR: Final = 6.0


@dataclass(frozen=True, slots=True)
class Layer:
    """Values over rising positions; the lowest and the highest of each are one array where they are the same."""

    x: Floats
    low: Floats
    high: Floats
    colour: QColor
    label: str = ""

    @property
    def y(self) -> Floats:
        """Values where there is one for each position."""
        return self.low


@dataclass(frozen=True, slots=True)
class Strokes(Layer):
    """From the lowest to the highest value of each bin; with one row a bin, a plain line."""


@dataclass(frozen=True, slots=True)
class Line(Layer):
    """A smooth line."""


@dataclass(frozen=True, slots=True)
class Points(Layer):
    """A ring at each value, joined by a thin line; only a dashed line where rings would touch.

    Attributes:
        best: Where a star stands; None for nowhere.
    """

    best: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Area(Layer):
    """Filled between two values at each position."""


def cut(layer: Layer, part: slice | NDArray[np.bool_]) -> Layer:
    low = layer.low[part]
    return replace(layer, x=layer.x[part], low=low, high=low if layer.high is layer.low else layer.high[part])


def broken(layer: Layer, gaps: Sequence[tuple[float, float]]) -> Layer:
    """Return a layer that is not drawn across gaps.

    Args:
        layer: With rising positions.
        gaps: The last position before each gap, and the first behind it.
    """
    x, heights = layer.x, [layer.low] if layer.low is layer.high else [layer.low, layer.high]
    for before, behind in gaps:
        first, last = int(np.searchsorted(x, before, "right")), int(np.searchsorted(x, behind, "left"))
        # What lies between is a bin of rows on both sides.
        if first > 0 and last < len(x):
            x = np.concatenate((x[:first], [before], x[last:]))
            heights = [np.concatenate((part[:first], [np.nan], part[last:])) for part in heights]
    return layer if x is layer.x else replace(layer, x=x, low=heights[0], high=heights[-1])


def draw_sign(painter: QPainter, box: QRectF, colour: QColor | None, is_ring: bool = False) -> None:
    """Draw a square in a curve's colour, or a ring where it is drawn as points."""
    if colour is None:
        return
    if not is_ring:
        painter.fillRect(box, colour)
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(colour)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(box.adjusted(1, 1, -1, -1))
    painter.restore()


def polygon(x: Floats, y: Floats) -> QPolygonF:
    """Pixel positions as Qt takes them, copied in one go."""
    points = QPolygonF()
    points.resize(len(x))
    if len(x):
        # Its stub knows neither the address that `data` returns nor the size.
        pointer: Any = shiboken6.VoidPtr
        memory = np.frombuffer(pointer(points.data(), len(x) * 16, True), dtype=np.float64).reshape(-1, 2)
        memory[:, 0] = x
        np.minimum(np.maximum(y, -FAR), FAR, out=memory[:, 1])  # np.clip takes twice as long
    return points


def pieces(known: np.ndarray) -> Iterator[slice]:
    """Yield the stretches of positions where `known` is true."""
    if known.all():
        if len(known):
            yield slice(0, len(known))
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], known, [False]))))
    for start, stop in edges.reshape(-1, 2).tolist():
        yield slice(start, stop)


def hairline(colour: QColor, dashes: tuple[float, ...] = (), width: float = 0.0) -> QPen:
    """A cosmetic pen: one device pixel, or `width` of them."""
    pen = QPen(colour, width)
    pen.setCosmetic(True)
    if dashes:
        pen.setDashPattern(dashes)
    return pen


def draw_strokes(painter: QPainter, x: Floats, low: Floats, high: Floats, colour: QColor) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(hairline(colour))
    for piece in pieces(~(np.isnan(low) | np.isnan(high))):
        part_x, part_low, part_high = x[piece], low[piece], high[piece]
        if part_low is part_high or bool((part_low == part_high).all()):
            painter.drawPolyline(polygon(part_x, part_low)) if len(part_x) > 1 else _dot(painter, part_x, part_low)
            continue
        y = np.empty(2 * len(part_x))
        y[0::2], y[1::2] = part_low, part_high
        painter.drawPolyline(polygon(np.repeat(part_x, 2), y))


def fill_area(painter: QPainter, x: Floats, low: Floats, high: Floats, colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    for piece in pieces(~(np.isnan(low) | np.isnan(high))):
        outline = np.concatenate((x[piece], x[piece][::-1])), np.concatenate((low[piece], high[piece][::-1]))
        painter.drawPolygon(polygon(*outline))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def draw_line(painter: QPainter, line: Line, x: Floats, y: Floats) -> None:
    """Draws a `Line` at pixel positions.

    It is drawn twice, a little apart: as visible as a pen of width 1.6, at a tenth of its cost.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(hairline(line.colour))
    polygons: list[QPolygonF] = []
    for piece in pieces(~np.isnan(y)):
        if piece.stop - piece.start == 1:
            _dot(painter, x[piece], y[piece])
        else:
            polygons.append(polygon(x[piece], y[piece]))
    for apart in (-APART, APART):
        painter.translate(apart, -apart)
        for points in polygons:
            painter.drawPolyline(points)
        painter.translate(-apart, apart)


def draw_star(painter: QPainter, at: QPointF, colour: QColor, ground: QColor) -> None:
    """Draw a five-pointed star with an edge in the ground's colour."""
    corners = []
    for number in range(10):
        angle, reach = math.pi * (number / 5 - 0.5), STAR * (1.0 if number % 2 == 0 else 0.45)
        corners.append(QPointF(at.x() + reach * math.cos(angle), at.y() + reach * math.sin(angle)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(hairline(ground))
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF(corners))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def draw_points(painter: QPainter, points: Points, x: Floats, y: Floats, ground: QColor, thread: QColor) -> None:
    """Draws `Points` at pixel positions; rings only while they have room."""
    known = ~np.isnan(y)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    dense = len(x) > 1 and (x[-1] - x[0]) / len(x) < RING_ROOM
    painter.setPen(hairline(points.colour, (3.0, 4.0)) if dense else hairline(thread))
    for piece in pieces(known):
        painter.drawPolyline(polygon(x[piece], y[piece]))
    x, y = x[known], y[known]
    if dense:
        return
    painter.setPen(hairline(points.colour))
    painter.setBrush(ground)
    for px, py in zip(x.tolist(), y.tolist(), strict=True):
        painter.drawEllipse(QPointF(px, py), 2.5, 2.5)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _dot(painter: QPainter, x: Floats, y: Floats) -> None:
    painter.drawRect(QRectF(float(x[0]) - 1, float(y[0]) - 1, 2, 2))
