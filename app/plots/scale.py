"""The vertical range of a plot: fitted to its curves, or chosen by a person."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.run_data.pyramid import Floats

MARGIN = 0.06
OUTLIER_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Scale:
    """A vertical range; for a logarithmic one, low and high are powers of ten.

    Attributes:
        low, high: In values, or in their decimal logarithms when `log`.
    """

    low: float
    high: float
    log: bool = False

    def place(self, values: Floats, top: float, height: float) -> Floats:
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.where(values > 0, np.log10(values), np.nan)
        placed: Floats = top + (self.high - values) / (self.high - self.low) * height
        return placed

    def outside(self, low: Floats, high: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which bins reach above the range, and which below; gaps do neither."""
        top, bottom = (10.0**self.high, 10.0**self.low) if self.log else (self.high, self.low)
        below = low < bottom
        return high > top, below & (low > 0) if self.log else below


def fitting(values: Iterable[Floats], *, log: bool = False, floor: float | None = None) -> Scale | None:
    """The range that shows all values, with a little room; None while there is nothing to show.

    A few far outliers are left outside (the plot marks them at its edge): when everything is more than four times
    as high as what lies between the first and the last percent.

    Args:
        values: What is to be seen; NaN is passed over.
        log: For a logarithmic axis: values that are not positive are passed over.
        floor: A value that is always at the bottom, such as 0 for a rate.
    """
    arrays = [array for array in values if len(array)]
    if not arrays:
        return None
    every = np.concatenate(arrays)
    every = every[np.isfinite(every)]
    if log:
        every = np.log10(every[every > 0])
    if not len(every):
        return None
    low, high = float(every.min()), float(every.max())
    # Not np.percentile: it loads numpy.ma, which takes longer than drawing all plots.
    some = np.sort(every[:: max(1, len(every) // 4000)])
    inner_low, inner_high = np.interp((0.01 * (len(some) - 1), 0.99 * (len(some) - 1)), np.arange(len(some)), some)
    inner = inner_high - inner_low
    if inner > 0 and high - low > OUTLIER_FACTOR * inner:
        low, high = max(low, float(inner_low - inner / 2)), min(high, float(inner_high + inner / 2))
    if floor is not None and not log:
        low = min(low, floor)
    if high - low < 1e-12 * max(1.0, abs(high)):
        spread = 0.5 if log else (abs(high) * 0.1 or 1.0)
        return Scale(floor if floor is not None and not log else low - spread, high + spread, log)
    room = MARGIN * (high - low)
    return Scale(low if floor is not None and math.isclose(low, floor) else low - room, high + room, log)
