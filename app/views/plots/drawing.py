"""Arrays onto a painter, quickly: cosmetic one-pixel pens, opaque colours, no Python loop over points."""

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
# Pixels over which one of several lines is on top: where they are one line, each shows its colour in turn.
STRIPE: Final = 14.0
MOST_STRIPED: Final = 8
# Pixels of a plot.
WIDEST: Final = 8192.0


@dataclass(frozen=True, slots=True)
class Strokes:
    """From the lowest to the highest value of each bin; with one row a bin, a plain line."""

    x: Floats
    low: Floats
    high: Floats
    colour: QColor
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    x: Floats
    y: Floats
    colour: QColor
    dashes: tuple[float, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """A ring at each value, joined by a thin line; only a dashed line where rings would touch.

    Attributes:
        best: Where a star stands; None for nowhere.
    """

    x: Floats
    y: Floats
    colour: QColor
    label: str = ""
    best: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """Filled between two values at each position."""

    x: Floats
    low: Floats
    high: Floats
    colour: QColor
    label: str = ""


Layer = Strokes | Line | Points | Area


def cut(layer: Layer, part: slice) -> Layer:
    """A part of a layer; where minima and maxima are one array (a row for each position), they stay one."""
    x = layer.x[part]  # not by `replace`, which takes longer than all the rest
    if isinstance(layer, Strokes | Area):
        low = layer.low[part]
        return type(layer)(x, low, low if layer.high is layer.low else layer.high[part], layer.colour, layer.label)
    if isinstance(layer, Line):
        return Line(x, layer.y[part], layer.colour, layer.dashes, layer.label)
    return Points(x, layer.y[part], layer.colour, layer.label, layer.best)


def broken(layer: Layer, gaps: Sequence[tuple[float, float]]) -> Layer:
    """A layer that is not drawn across gaps.

    Args:
        layer: With rising positions.
        gaps: The last position before each gap, and the first behind it.
    """
    x, heights = layer.x, [layer.low, layer.high] if isinstance(layer, Strokes | Area) else [layer.y]
    is_one = len(heights) == 2 and heights[0] is heights[1]
    for before, behind in gaps:
        first, last = int(np.searchsorted(x, before, "right")), int(np.searchsorted(x, behind, "left"))
        if first > 0 and last < len(x):  # what lies between is a bin of rows on both sides
            x = np.concatenate((x[:first], [before], x[last:]))
            heights = [np.concatenate((part[:first], [np.nan], part[last:])) for part in heights]
    if x is layer.x:
        return layer
    if isinstance(layer, Strokes | Area):
        return replace(layer, x=x, low=heights[0], high=heights[0] if is_one else heights[1])
    return replace(layer, x=x, y=heights[0])


def draw_sign(painter: QPainter, box: QRectF, colour: QColor | None, is_ring: bool = False) -> None:
    """A square in a curve's colour, or a ring where it is drawn as points; nothing for a value without a curve."""
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
        pointer: Any = shiboken6.VoidPtr  # its stub knows neither the address that `data` returns nor the size
        memory = np.frombuffer(pointer(points.data(), len(x) * 16, True), dtype=np.float64).reshape(-1, 2)
        memory[:, 0] = x
        np.minimum(np.maximum(y, -FAR), FAR, out=memory[:, 1])  # np.clip takes twice as long
    return points


def pieces(known: np.ndarray) -> Iterator[slice]:
    """The stretches of positions where `known` is true."""
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
    """Draws `Strokes` at pixel positions (`low` and `high` in any order)."""
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


def draw_area(painter: QPainter, x: Floats, low: Floats, high: Floats, colour: QColor) -> None:
    """Draws an `Area` at pixel positions."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    for piece in pieces(~(np.isnan(low) | np.isnan(high))):
        there_and_back = np.concatenate((x[piece], x[piece][::-1]))
        painter.drawPolygon(polygon(there_and_back, np.concatenate((low[piece], high[piece][::-1]))))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def draw_lines(painter: QPainter, lines: Sequence[tuple[Line, Floats, Floats]], origin: float) -> None:
    """Draws each `Line` at pixel positions, then a part of each again, so that none hides another.

    Args:
        painter: Draws.
        lines: Lines with their positions.
        origin: The pixel of the axis' zero: stripes move with the curves.
    """
    for line, x, y in lines:
        _draw_line(painter, line, x, y)
    plain = [entry for entry in lines if not entry[0].dashes]
    if 1 < len(plain) <= MOST_STRIPED:
        for number, (line, x, y) in enumerate(plain[:-1]):
            _draw_line(painter, line, x, np.where(in_stripe(x, number, len(plain), origin), y, np.nan))


def in_stripe(x: Floats, number: int, count: int, origin: float) -> NDArray[np.bool_]:
    """Where one of several curves has its turn, at pixel positions.

    Args:
        x: In pixels.
        number: Of the curve.
        count: How many take turns.
        origin: The pixel of the axis' zero: stripes move with the curves.
    """
    found: NDArray[np.bool_] = np.floor((x - origin % (STRIPE * count)) / STRIPE) % count == number
    found[1:] |= found[:-1]  # up to the next stripe's first point
    return found


def in_turn(
    x: Floats, low: Floats, high: Floats, number: int, count: int, origin: float
) -> tuple[Floats, Floats, Floats]:
    """What one of several equal curves shows of itself, from edge to edge of its stripes where it is a plain line.

    Args:
        x: Positions in pixels.
        low: Values there, the lowest.
        high: The highest; the same array for a plain line.
        number: As for `in_stripe`.
        count: Likewise.
        origin: Likewise.
    """
    if low is high and len(x) > 1:
        start, first, last = origin % STRIPE, max(float(x[0]), -STRIPE), min(float(x[-1]), WIDEST)
        edges = np.arange(math.ceil((first - start) / STRIPE), math.floor((last - start) / STRIPE) + 1) * STRIPE + start
        places = np.sort(np.concatenate((x, edges)))
        x, low = places, np.interp(places, x, low)
        high = low
    seen = in_stripe(x, number, count, origin)
    part = np.where(seen, low, np.nan)
    return x, part, part if low is high else np.where(seen, high, np.nan)


def turns_of(layers: Sequence[Layer]) -> dict[int, tuple[int, int]]:
    """Strokes of the same values, as a learning rate has on all devices: the last would hide the others.

    Returns:
        The number among its equals and how many they are, by the place of the layer; without those that have none.
    """
    alike: dict[tuple[int, float], list[tuple[Strokes, list[int]]]] = {}  # mostly the last values differ already
    for place, layer in enumerate(layers):
        if isinstance(layer, Strokes) and len(layer.x):
            groups = alike.setdefault((len(layer.x), float(layer.low[-1])), [])
            group = next((g for first, g in groups if len(g) < MOST_STRIPED and _have_same_values(first, layer)), None)
            if group is None:
                groups.append((layer, group := []))
            group.append(place)
    found = [group for groups in alike.values() for _, group in groups if len(group) > 1]
    return {place: (number, len(group)) for group in found for number, place in enumerate(group)}


def _have_same_values(one: Strokes, other: Strokes) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in ((one.low, other.low), (one.high, other.high)))


def _draw_line(painter: QPainter, line: Line, x: Floats, y: Floats) -> None:
    """Draws a line.

    One without dashes is drawn twice, a little apart: as visible as a pen of width 1.6, at a tenth of its cost.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(hairline(line.colour, line.dashes))
    polygons: list[QPolygonF] = []
    for piece in pieces(~np.isnan(y)):
        if piece.stop - piece.start == 1:
            _dot(painter, x[piece], y[piece])
        else:
            polygons.append(polygon(x[piece], y[piece]))
    for apart in (0.0,) if line.dashes else (-APART, APART):
        painter.translate(apart, -apart)
        for points in polygons:
            painter.drawPolyline(points)
        painter.translate(-apart, apart)


def draw_star(painter: QPainter, at: QPointF, colour: QColor, ground: QColor) -> None:
    """A five-pointed star around a place, with an edge in the ground's colour."""
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
