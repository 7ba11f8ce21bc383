"""Curves of a plot, made from series: at most two bins a pixel.

Bins lie on a fixed grid of rows (powers of two), not on the view's edges, so that a curve does not shimmer
while it is moved. With fewer rows in view than pixels, every row is drawn as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.run_data.column import Column
from app.run_data.pyramid import BIN, Floats, pairs, running_max, summarise
from app.run_data.series import Series, XAxis

LEAST_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Curve:
    """The drawn part of one column in one view.

    Attributes:
        low: Minimum of each bin; NaN where nothing was reported.
        width: Rows in a bin; 1 means that every row is drawn.
    """

    x: Floats
    low: Floats
    high: Floats
    mean: Floats
    width: int


EMPTY: Final = Curve(np.empty(0), np.empty(0), np.empty(0), np.empty(0), 1)


def reduce_rows(
    series: Series, name: str, axis: XAxis, first: int, last: int, bins: int, least_width: int = 1
) -> Curve:
    """Reduce rows ``[first, last)`` of a column to about `bins` bins; the cost grows with `bins`, not with rows."""
    column, ticks = series.columns.get(name), series.columns.get(axis)
    first, last = max(0, first), min(last, series.rows)
    if column is None or ticks is None or last <= first:
        return EMPTY
    width = least_width
    while (last - first) > width * bins:
        width *= 2
    if width < BIN and last - first >= LEAST_SHARE * bins * BIN:
        # A little coarse, but made already: reading a hundred thousand rows a curve costs frames.
        width = BIN
    if width == 1:
        rows = column.read(first, last)
        x = series.positions(axis, first, last, 1, lambda: running_max(ticks.read(first, last)))
        return Curve(x, rows, rows, rows, 1)
    first = first // width * width
    x = series.positions(axis, first, last, width, lambda: _middle_of(_binned(ticks, first, last, width)))
    low, high, mean = _binned(column, first, last, width)
    return Curve(x, low, high, mean, width)


def bins_of(series: Series, name: str, first: int, last: int, width: int) -> Floats:
    """Return minima, maxima and means of bins of `width` rows from `first`, where one begins: shape ``(3, n)``."""
    column = series.columns.get(name)
    return np.empty((3, 0)) if column is None or last <= first else _binned(column, first, last, width)


def reduce_range(series: Series, name: str, axis: XAxis, low: float, high: float, bins: int) -> tuple[Curve, int]:
    """Reduce the part of a column between `low` and `high`, with one row more on both sides.

    Returns:
        The curve, and the row it begins with.
    """
    first, last = series.rows_between(axis, low, high)
    curve = reduce_rows(series, name, axis, first, last, bins)
    return curve, first // curve.width * curve.width


def _binned(column: Column, first: int, last: int, width: int) -> Floats:
    if width == 1:
        return np.broadcast_to(column.read(first, last), (3, last - first))
    return (_of_rows if width < BIN else _of_bins)(column, first, last, width)


def _middle_of(ticks: Floats) -> Floats:
    return running_max((ticks[0] + ticks[1]) / 2)


def _of_rows(column: Column, first: int, last: int, width: int) -> Floats:
    """Return minima, maxima and means of bins of `width` rows from `first` on; the last may be smaller."""
    whole = last // width * width
    return _with_rest(column.summary(first, whole, width), column.read(whole, last))


def _of_bins(column: Column, first: int, last: int, width: int) -> Floats:
    level = (width // BIN).bit_length() - 1
    start = first // width
    whole = column.pyramid.level(level)
    stop = min(-(-last // width), whole.shape[1])
    summary = whole[:, start:stop]
    if stop * width >= last:
        return summary
    # The last bin is not whole: its whole small bins, and then its single rows.
    small = (stop << level, min(-(-last // BIN), column.pyramid.bins))
    rest = column.read(max(small[1] * BIN, stop * width), last)
    return _joined(summary, column.pyramid.level(0)[:, small[0] : small[1]], rest)


def _joined(summary: Floats, small: Floats, rows: Floats) -> Floats:
    """Add one more bin to `summary`, made of small bins and single rows."""
    parts = np.concatenate((small, _with_rest(np.empty((3, 0)), rows)), axis=1)
    if not parts.shape[1]:
        return summary
    weights = np.append(np.full(small.shape[1], float(BIN)), [float(len(rows))] * (len(rows) > 0))
    known = ~np.isnan(parts[2])
    mean = float(np.dot(parts[2][known], weights[known]) / weights[known].sum()) if known.any() else np.nan
    last = np.array([[np.fmin.reduce(parts[0])], [np.fmax.reduce(parts[1])], [mean]])
    return np.concatenate((summary, last), axis=1)


def _with_rest(summary: Floats, rest: Floats) -> Floats:
    return np.concatenate((summary, summarise(rest, len(rest))), axis=1) if len(rest) else summary


def one_a_pixel(curve: Curve, first: int, pixels: float) -> tuple[Curve, int]:
    """Merge each two neighbours of a curve that has more than one bin a pixel: a smoothed line needs no more.

    Args:
        curve: With at most two bins a pixel, on the grid of `reduce_rows`.
        first: The row it begins with.
        pixels: Width of the plot.

    Returns:
        The curve (the same one if it has no more bins), and the row it begins with.
    """
    if len(curve.x) <= pixels:
        return curve, first
    ahead = first // curve.width % 2
    behind = (len(curve.x) + ahead) % 2
    parts = np.stack((curve.x, curve.low, curve.high, curve.mean))
    parts = np.concatenate((parts[:, :ahead], parts, parts[:, len(curve.x) - behind :]), axis=1)
    low, high, mean = pairs(parts[1:])
    merged = Curve((parts[0, ::2] + parts[0, 1::2]) / 2, low, high, mean, 2 * curve.width)
    return merged, first - ahead * curve.width


def mean_of(curves: Sequence[Curve], *, bounds: bool = True) -> Curve:
    """The mean over ranks, aligned by position on the axis; where a rank has no value, that of the others.

    For bins wider than one row, low and high are the means of the ranks' minima and maxima: bounds between which
    the true mean of every row lies. What the ranks have not all reached yet (up to three bins) is left out.

    Args:
        curves: One a rank.
        bounds: False leaves low and high as the mean, which is a third of the work.
    """
    curves = [curve for curve in curves if len(curve.x)]
    if len(curves) < 2:
        return curves[0] if curves else EMPTY
    width = max(curve.width for curve in curves)
    if all(len(c.x) == len(curves[0].x) and bool((c.x == curves[0].x).all()) for c in curves):
        average = _nanmean(np.stack([c.mean for c in curves]))
        if not bounds or width == 1:
            return Curve(curves[0].x, average, average, average, width)
        low, high = _nanmean(np.stack([c.low for c in curves])), _nanmean(np.stack([c.high for c in curves]))
        return Curve(curves[0].x, low, high, average, width)
    x = np.sort(np.concatenate([curve.x for curve in curves]))  # not np.unique, which loads numpy.ma
    x = x[np.append(True, x[1:] != x[:-1])]
    last = min(float(curve.x[-1]) for curve in curves)
    ahead = int((x > last).sum())
    x = x[x <= last] if ahead <= 3 else x
    average = _nanmean(np.stack([_at(c, "mean", x) for c in curves]))
    if not bounds or width == 1:
        return Curve(x, average, average, average, width)
    low, high = (_nanmean(np.stack([_at(c, part, x) for c in curves])) for part in ("low", "high"))
    return Curve(x, low, high, average, width)


def _at(curve: Curve, part: str, x: Floats) -> Floats:
    values: Floats = np.full(len(x), np.nan)
    where = np.searchsorted(x, curve.x)
    there = where < len(x)
    where, source = where[there], getattr(curve, part)[there]
    same = x[where] == curve.x[there]
    values[where[same]] = source[same]
    return values


def _nanmean(values: Floats) -> Floats:
    mean: Floats = values.mean(axis=0)
    gaps = np.isnan(mean)
    if gaps.any():
        part = values[:, gaps]
        there = ~np.isnan(part)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean[gaps] = np.where(there, part, 0.0).sum(axis=0) / there.sum(axis=0)
    return mean
