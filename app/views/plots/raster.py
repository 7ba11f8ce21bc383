"""Dense curves as columns of pixels, filled by NumPy: a tenth of what a painter needs for the same strokes."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QColor, QImage

from app.models.pyramid import Floats
from app.views.plots.drawing import pieces


class Raster:
    """A transparent picture of the plot's inside, in device pixels; later fills cover earlier ones.

    Args:
        width: In device pixels.
        height: In device pixels.
    """

    def __init__(self, width: int, height: int) -> None:
        self._pixels = np.zeros((height, width), np.uint32)
        self._rows = np.arange(height, dtype=np.float32)[:, None]
        self.is_empty = True

    def stroke(self, x: Floats, top: Floats, bottom: Floats, colour: QColor) -> None:
        """From the top to the bottom of each bin, neighbours joined; meant for one bin a pixel or more.

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
        """Everything between two curves; between two positions they run straight."""
        for piece in pieces(~(np.isnan(top) | np.isnan(bottom))):
            px = x[piece]
            if len(px) > px[-1] - px[0]:
                first, upper, lower = self._columns(px, top[piece], bottom[piece])
            else:
                first = int(max(0, np.floor(px[0])))
                columns = np.arange(first, min(self._pixels.shape[1], int(np.ceil(px[-1])) + 1)) + 0.0
                upper, lower = np.interp(columns, px, top[piece]), np.interp(columns, px, bottom[piece])
            self._fill(first, upper, lower, colour)

    def image(self, ratio: float) -> QImage:
        """The picture; it owns its pixels."""
        height, width = self._pixels.shape
        image = QImage(self._pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()
        image.setDevicePixelRatio(ratio)
        return image

    def _columns(self, x: Floats, top: Floats, bottom: Floats) -> tuple[int, Floats, Floats]:
        """The extremes in each pixel column, from the first to the last; one without a bin repeats the one before."""
        column = np.clip(np.floor(x), -1, self._pixels.shape[1]).astype(np.intp)
        starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
        filled = column[starts]
        source = np.searchsorted(filled, np.arange(filled[0], filled[-1] + 1), "right") - 1
        return int(filled[0]), np.minimum.reduceat(top, starts)[source], np.maximum.reduceat(bottom, starts)[source]

    def _fill(self, first: int, upper: Floats, lower: Floats, colour: QColor) -> None:
        height, width = self._pixels.shape
        skip, first = max(0, -first), max(0, first)
        count = min(len(upper) - skip, width - first)
        if count <= 0:
            return
        upper = np.clip(upper[skip : skip + count], -1, height)
        lower = np.clip(lower[skip : skip + count], -1, height)
        begin, end = max(0, int(upper.min())), min(height, int(lower.max()) + 1)
        if begin >= end:
            return
        rows, window = self._rows[begin:end], self._pixels[begin:end, first : first + count]
        inside = (rows >= np.floor(upper).astype(np.float32)) & (rows <= lower.astype(np.float32))
        np.copyto(window, np.uint32(colour.rgba()), where=inside)
        self.is_empty = False
