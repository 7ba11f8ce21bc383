"""The bold line of a chart: a local linear fit over a number of steps, which lags nowhere and bends at no end.

A moving average of a falling loss lies above it, most of all at both ends. A straight line
that is fitted to the neighbours of each point does not (Cleveland 1979, Robust Locally Weighted Regression, section
2). How far neighbours reach is a number of steps, so that the line is the same at any zoom and in a window of any
width. Single values far outside are left out of it first, as Hampel's filter does (Pearson 2002, Outliers in process
modeling and identification): one spike lifts no line. What was reported, spikes and all, is drawn behind it.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Final

import numpy as np

from app.run_data.curves import Curve, bins_of, one_a_pixel, reduce_rows
from app.run_data.pyramid import Floats
from app.run_data.series import Series, XAxis

LEAST_HALF_WIDTH: Final = 0.5
# Bins on each side that a fit reaches to: more cost frames, and cannot be seen.
MOST_HALF_WIDTH: Final = 128
# Values on each side that an outlier is compared with: a spike of up to three values is one.
NEAR: Final = 3
# Of an outlier, in median absolute deviations: 1.4826 of them are a standard deviation of normal noise.
FAR: Final = 5 * 1.4826


def half_width_rows(steps: int, series: Series) -> float:
    """How many rows on each side of a point its fit reaches to.

    Args:
        steps: The strength that a person chose.
        series: Whose rows; a script may report every tenth step only.
    """
    bounds = series.bounds("step")
    if not steps or bounds is None or series.rows < 2:
        return 0.0
    return steps / max(1.0, (bounds[1] - bounds[0]) / (series.rows - 1))


def smooth_line(
    series: Series, name: str, axis: XAxis, curve: Curve, first: int, half_width: float, pixels: float
) -> Curve:
    """The smoothed line of what `reduce_range` gave, with at most one place a pixel.

    Args:
        series: Where the column is.
        name: The column.
        axis: What the curve is drawn over.
        curve: With at most two bins a pixel.
        first: The row that it begins with.
        half_width: In rows; less than half of a bin gives the bins' means.
        pixels: How wide the plot is.
    """
    thin, start = one_a_pixel(curve, first, pixels)
    width = thin.width
    while half_width > MOST_HALF_WIDTH * width:
        width *= 2
    # A strong line needs no place for each row, but one beyond either edge.
    if width > thin.width and len(thin.x):
        begin, end = max(0, start - width), min(series.rows, start + len(thin.x) * thin.width + width)
        thin = reduce_rows(series, name, axis, begin, end, 2 * int(pixels), width)
        start = begin // thin.width * thin.width
    line = smoothed(series, name, thin, start, half_width)
    return Curve(thin.x, line, line, line, thin.width)


def smoothed_at(series: Series, name: str, axis: XAxis, place: float, half_width: float) -> float | None:
    """The smoothed value at a place of an axis, from the rows themselves: the same at any zoom."""
    column, row = series.columns.get(name), series.row_at(axis, place, "right") - 1
    if column is None or row < 0:
        return None
    reach = ceil(half_width)
    first = max(0, row - reach - 2 * NEAR)
    values = column.read(first, min(series.rows, row + reach + 2 * NEAR + 1))
    known = np.flatnonzero(np.isfinite(values[: row - first + 1]))
    if not len(known):
        return None
    place, cleaned = int(known[-1]), without_outliers(values)
    if half_width < LEAST_HALF_WIDTH:
        return float(cleaned[place])
    return float(_fitted(np.pad(cleaned, reach, constant_values=np.nan)[place : place + 2 * reach + 1], half_width)[0])


def smoothed(series: Series, name: str, curve: Curve, first: int, half_width: float) -> Floats:
    """A smoothed line through what `reduce_range` gave.

    Rows that are next to those in view count, so the line is the same wherever the view ends. Gaps stay gaps.

    Args:
        series: Where the column is.
        name: The column.
        curve: What is drawn of it.
        first: The row that the curve begins with.
        half_width: In rows; less than half of a bin gives the bins' means.

    Returns:
        One value for each of ``curve.x``.
    """
    half_bins = half_width / curve.width
    if half_bins < LEAST_HALF_WIDTH or not len(curve.x):
        return curve.mean
    reach = ceil(half_bins) * curve.width
    behind = first + len(curve.x) * curve.width
    before = bins_of(series, name, max(0, first - reach), first, curve.width)[2]
    after = bins_of(series, name, behind, min(behind + reach, series.rows), curve.width)[2]
    mean = curve.mean.copy()
    for place, row in ((0, first), (-1, behind - curve.width)):  # a view's edges may cut a bin
        mean[place] = bins_of(series, name, row, min(row + curve.width, series.rows), curve.width)[2][0]
    line = local_linear(without_outliers(np.concatenate((before, mean, after))), half_bins)
    return line[len(before) : len(before) + len(curve.x)]


def without_outliers(values: Floats) -> Floats:
    """The values, with those far outside replaced by the median of their neighbours.

    Where more than half of the neighbours are equal, as of a reward that is mostly 0, nothing is an outlier.
    """
    known = np.flatnonzero(np.isfinite(values))
    if len(known) <= 2 * NEAR:
        return values
    kept = values[known]
    windows = np.lib.stride_tricks.sliding_window_view(kept, 2 * NEAR + 1).T
    middles = _medians(windows)
    spread = _medians(np.abs(windows - middles))
    # The first and last have neighbours on one side only.
    inner = kept[NEAR:-NEAR]
    far = np.flatnonzero((np.abs(inner - middles) > FAR * spread) & (spread > 0))
    if not len(far):
        return values
    cleaned: Floats = values.copy()
    cleaned[known[NEAR + far]] = middles[far]
    return cleaned


def _medians(rows: Floats) -> Floats:
    """The median of each column: a few exchanges of whole rows, a quarter of the time of NumPy's sorting."""
    left = list(rows)
    for last in range(len(left) - 1, len(left) // 2 - 1, -1):
        for place in range(last):
            one, other = left[place], left[place + 1]
            left[place], left[place + 1] = np.minimum(one, other), np.maximum(one, other)
    middle: Floats = left[len(left) // 2]
    return middle


def local_linear(values: Floats, half_width: float) -> Floats:
    """A straight line fitted to the neighbours of each value, read where the value stands.

    Weights are Cleveland's tricube (1979, equation 2): the nearer, the more. No value lies outside its neighbours'.

    Args:
        values: Evenly spaced; those that are not finite are gaps.
        half_width: How far neighbours reach, in places.

    Returns:
        As many; NaN in gaps.
    """
    return _fitted(np.pad(values, ceil(half_width), constant_values=np.nan), half_width)


def _fitted(values: Floats, half_width: float) -> Floats:
    """`local_linear` at the places that have all their neighbours."""
    weights, slopes, _ = _tricube(half_width)
    reach = len(weights) // 2
    known = np.isfinite(values)
    inner = slice(reach, len(values) - reach)
    if known[inner].all() and not known[:reach].any() and not known[len(values) - reach :].any():
        total, first, second = _moments(len(values) - 2 * reach, half_width)
    else:
        total, first, second = _sums(known.astype(float), half_width)
    filled = np.where(known, values, 0.0)
    level, lean = np.correlate(filled, weights, "valid"), np.correlate(filled, slopes, "valid")
    spread = total * second - first * first
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A point without neighbours on both sides of its gap has no slope: its line is flat.
        line: Floats = np.where(spread > 1e-9 * total * total, (second * level - first * lean) / spread, level / total)
    # With neighbours on one side only, a steep line would end where no value ever was: a throughput below zero.
    leaning = np.flatnonzero(np.abs(first) > 1e-9)
    near = np.lib.stride_tricks.sliding_window_view(np.where(known, values, np.nan), 2 * reach + 1)[leaning]
    line[leaning] = np.minimum(np.fmax.reduce(near, axis=1), np.maximum(np.fmin.reduce(near, axis=1), line[leaning]))
    line[~known[inner]] = np.nan
    return line


@lru_cache(maxsize=64)
def _tricube(half_width: float) -> tuple[Floats, Floats, Floats]:
    """Weights of the places from ``-reach`` to ``reach``, these times the place, and times its square.

    Places are shares of the half-width.
    """
    reach = ceil(half_width)
    share = np.arange(-reach, reach + 1) / (half_width + 1.0)
    weights = (1.0 - np.abs(share) ** 3) ** 3
    return weights, weights * share, weights * share**2


@lru_cache(maxsize=64)
def _moments(count: int, half_width: float) -> tuple[Floats, Floats, Floats]:
    return _sums(np.pad(np.ones(count), ceil(half_width)), half_width)


def _sums(known: Floats, half_width: float) -> tuple[Floats, Floats, Floats]:
    """The sums of weights around each place, of weights times distance, and of weights times its square."""
    total, first, second = (np.correlate(known, part, "valid") for part in _tricube(half_width))
    return total, first, second
