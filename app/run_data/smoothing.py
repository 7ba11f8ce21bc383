"""The bold line of a chart: a local linear fit, which lags nowhere and does not bend towards the ends of a run.

A moving average of a falling loss lies above it, most of all where it begins and where it ends. A straight line
that is fitted to the neighbours of each point does not (Cleveland 1979, Robust Locally Weighted Regression, section
2, without its robustness weights).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log2
from typing import Final

import numpy as np

from app.run_data.curves import Curve, bins_of
from app.run_data.pyramid import Floats
from app.run_data.series import Series

BINS_A_PIXEL: Final = 2
"""What a chart asks of `reduce_range`."""
LEAST_HALF_WIDTH: Final = 0.5


def half_width_rows(pixels: float, rows: int, bins: int) -> float:
    """How many rows on each side of a point its fit reaches to, so that it is about `pixels` at any zoom.

    It doubles when the bins that are drawn double, and stays the same while a view is moved.

    Args:
        pixels: On each side.
        rows: In view.
        bins: The most that are drawn.
    """
    return BINS_A_PIXEL * pixels * 2.0 ** ceil(log2(rows / bins)) if rows and bins else 0.0


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
    line = local_linear(np.concatenate((before, curve.mean, after)), half_bins)
    return line[len(before) : len(before) + len(curve.x)]


def local_linear(values: Floats, half_width: float) -> Floats:
    """A straight line fitted to the neighbours of each value, read where the value stands.

    Weights are Cleveland's tricube (1979, equation 2): the nearer, the more. No value lies outside its neighbours'.

    Args:
        values: Evenly spaced; those that are not finite are gaps.
        half_width: How far neighbours reach, in places.

    Returns:
        As many; NaN in gaps.
    """
    known = np.isfinite(values)
    weights, slopes = _tricube(half_width)
    if known.all():
        total, first, second = _moments(len(values), half_width)
    else:
        total, first, second = _sums(known.astype(float), half_width)
    filled = np.where(known, values, 0.0)
    level, lean = _around(filled, weights), _around(filled, slopes)
    spread = total * second - first * first
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A point without neighbours on both sides of its gap has no slope: its line is flat.
        line: Floats = np.where(spread > 1e-9 * total * total, (second * level - first * lean) / spread, level / total)
    _keep_in_range(line, values, first, len(weights) // 2)
    line[~known] = np.nan
    return line


def _keep_in_range(line: Floats, values: Floats, first: Floats, reach: int) -> None:
    """Keeps the fit between the lowest and the highest of the values it is made of.

    With neighbours on one side only, a steep line would end where no value ever was: a throughput below zero.
    """
    leaning = np.flatnonzero(np.abs(first) > 1e-9)
    padded = np.pad(np.where(np.isfinite(values), values, np.nan), reach, constant_values=np.nan)
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)[leaning]
    line[leaning] = np.minimum(np.fmax.reduce(near, axis=1), np.maximum(np.fmin.reduce(near, axis=1), line[leaning]))


@lru_cache(maxsize=64)
def _tricube(half_width: float) -> tuple[Floats, Floats]:
    """Weights of the places from ``-reach`` to ``reach``, and these times the place as a share of the half-width."""
    reach = ceil(half_width)
    share = np.arange(-reach, reach + 1) / (half_width + 1.0)
    weights = (1.0 - np.abs(share) ** 3) ** 3
    return weights, weights * share


@lru_cache(maxsize=64)
def _moments(count: int, half_width: float) -> tuple[Floats, Floats, Floats]:
    return _sums(np.ones(count), half_width)


def _sums(known: Floats, half_width: float) -> tuple[Floats, Floats, Floats]:
    """The sums of weights around each place, of weights times distance, and of weights times its square."""
    weights, slopes = _tricube(half_width)
    squares = np.divide(slopes**2, weights, out=np.zeros_like(weights), where=weights > 0)
    return _around(known, weights), _around(known, slopes), _around(known, squares)


def _around(values: Floats, weights: Floats) -> Floats:
    """The weighted sum of the values around each place."""
    reach = len(weights) // 2
    return np.correlate(values, weights, "full")[reach : reach + len(values)]
