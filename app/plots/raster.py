"""Dense curves as columns of pixels, filled by NumPy: a tenth of what a painter needs for the same strokes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from app.plots.drawing import pieces
from app.run_data.pyramid import Floats

MOST_FILLS: Final = 255
PIXEL_BYTES: Final = 4
# The first pixel column, where each filled one begins among the bins, and which of those a column repeats.
_Grid = tuple[int, NDArray[np.intp], NDArray[np.intp]]


class Raster:
    """A transparent picture of the plot's inside, in device pixels; later fills cover earlier ones.

    A pixel is the number of the last fill that covers it, one byte: a fill is then a maximum over bytes, for which
    a processor takes 32 at a time. NumPy looks the colours up: Qt takes more than twice as long for an indexed image.
    """

    def __init__(self, width: int, height: int) -> None:
        self._width = width
        self._fills = np.zeros((height, width), np.uint8)
        self._pixels: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._rows = np.arange(height, dtype=np.int16)[:, None]
        self._colours: list[int] = [0]
        self._grid: tuple[Floats, _Grid] | None = None
        self._filled = (height, 0)

    @property
    def is_empty(self) -> bool:
        return len(self._colours) == 1

    @property
    def height(self) -> int:
        return len(self._fills)

    @property
    def top(self) -> int:
        return self._filled[0]

    def stroke(self, x: Floats, top: Floats, bottom: Floats, colour: QColor) -> None:
        """Fill from the top to the bottom of each bin, neighbours joined; meant for one bin a pixel or more.

        Args:
            x: Positions in pixels, rising.
            top: The upper end of each bin in pixels; NaN for a gap.
            bottom: The lower end.
            colour: Opaque.
        """
        for piece in pieces(~(np.isnan(top) | np.isnan(bottom))):
            first, upper, lower = self._columns(x[piece], top[piece], bottom[piece])
            joined_upper, joined_lower = upper.copy(), lower.copy()
            joined_upper[:-1] = np.minimum(upper[:-1], lower[1:])
            joined_lower[:-1] = np.maximum(lower[:-1], upper[1:])
            self._fill(first, joined_upper, joined_lower, colour)

    def area(self, x: Floats, top: Floats, bottom: Floats, colour: QColor) -> None:
        for piece in pieces(~(np.isnan(top) | np.isnan(bottom))):
            px = x[piece]
            if len(px) > px[-1] - px[0]:
                first, upper, lower = self._columns(px, top[piece], bottom[piece])
            else:
                first = int(max(0, np.floor(px[0])))
                columns = np.arange(first, min(self._width, int(np.ceil(px[-1])) + 1)) + 0.0
                upper, lower = np.interp(columns, px, top[piece]), np.interp(columns, px, bottom[piece])
            self._fill(first, upper, lower, colour)

    def image(self, ratio: float) -> QImage:
        """Return the filled rows from `top` on; the pixels go with the raster, or with the next image."""
        begin, end = self._filled
        self._pixels = np.array(self._colours, np.uint32).take(self._fills[begin:end])
        size = (self._width, end - begin, PIXEL_BYTES * self._width)
        image = QImage(self._pixels.data, *size, QImage.Format.Format_ARGB32_Premultiplied)
        image.setDevicePixelRatio(ratio)
        return image

    def _columns(self, x: Floats, top: Floats, bottom: Floats) -> tuple[int, Floats, Floats]:
        """Return the extremes in each pixel column; one without a bin repeats the one before."""
        if self._grid is None or not np.array_equal(self._grid[0], x):  # the ranks of a run mostly share positions
            self._grid = x, _grid_of(x, self._width)
        first, starts, source = self._grid[1]
        return first, np.minimum.reduceat(top, starts)[source], np.maximum.reduceat(bottom, starts)[source]

    def _fill(self, first: int, upper: Floats, lower: Floats, colour: QColor) -> None:
        height = len(self._fills)
        skip, first = max(0, -first), max(0, first)
        count = min(len(upper) - skip, self._width - first)
        if count <= 0:
            return
        top, bottom = (_rows_of(ends[skip : skip + count], height) for ends in (upper, lower))
        begin, end = max(0, int(top.min())), min(height, int(bottom.max()) + 1)
        if begin >= end:
            return
        self._filled = min(self._filled[0], begin), max(self._filled[1], end)
        rows, window = self._rows[begin:end], self._fills[begin:end, first : first + count]
        inside = (rows >= top) & (rows <= bottom)
        np.maximum(window, inside.view(np.uint8) * self._number(colour), out=window)

    def _number(self, colour: QColor) -> np.uint8:
        """Return the number of the next fill; a fill of the same colour as the one before keeps its number."""
        if self._colours[-1] != colour.rgba() or self.is_empty:
            if len(self._colours) > MOST_FILLS:
                self._colours.pop()
            self._colours.append(colour.rgba())
        return np.uint8(len(self._colours) - 1)


def _rows_of(ends: Floats, height: int) -> NDArray[np.int16]:
    """Rows of pixels of these ends; those outside are in the next one beyond the edge."""
    return np.floor(np.minimum(np.maximum(ends, -1.0), float(height))).astype(np.int16)


def _grid_of(x: Floats, width: int) -> _Grid:
    column = np.clip(np.floor(x), -1, width).astype(np.intp)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
    filled = column[starts]
    return int(filled[0]), starts, np.searchsorted(filled, np.arange(filled[0], filled[-1] + 1), "right") - 1
