"""Minimum, maximum and mean of ever larger bins of one column, so that a plot reads what its pixels can show.

Level 0 holds one entry for each whole bin of `BIN` rows; level k one for `BIN * 2**k` rows. Upper levels are
made on first use, without those between, and then only extended: a plot of ten million points touches a few
thousand numbers, and keeps them and level 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.run_data.long_bins import BIN_ROWS

BIN: Final = BIN_ROWS
NARROW: Final = 32
LEAST_ROOM: Final = 64
# A plot has about a thousand pixels, so no level with fewer bins is read for all rows.
LEAST_BITS: Final = 10

Floats = NDArray[np.float64]


def summarise(rows: Floats, width: int) -> Floats:
    """Minimum, maximum and mean, NaN left out, of each `width` consecutive values; an all-NaN bin is NaN.

    Args:
        rows: Values; the length is a multiple of `width`.
        width: Values in a bin.

    Returns:
        Shape ``(3, len(rows) // width)``: minima, maxima, means.
    """
    bins = rows.reshape(-1, width)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        low, high, mean = _narrow(bins) if width <= NARROW else _wide(bins)
        ragged = np.isnan(mean)
        if ragged.any():
            part = bins[ragged]
            there = ~np.isnan(part)
            mean[ragged] = np.where(there, part, 0.0).sum(axis=1) / there.sum(axis=1)
    return np.stack((low, high, mean))


def _wide(bins: Floats) -> tuple[Floats, Floats, Floats]:
    return np.fmin.reduce(bins, axis=1), np.fmax.reduce(bins, axis=1), bins.mean(axis=1)


def _narrow(bins: Floats) -> tuple[Floats, Floats, Floats]:
    """Summarise across, not along: NumPy's reductions over few values cost ten times as much."""
    low, high, total = bins[:, 0].copy(), bins[:, 0].copy(), bins[:, 0].copy()
    for position in range(1, bins.shape[1]):
        values = bins[:, position]
        np.fmin(low, values, out=low)
        np.fmax(high, values, out=high)
        total += values
    return low, high, total / bins.shape[1]


def running_max(values: Floats) -> Floats:
    """The highest value so far, NaN taken as "as before"; the array itself where it rises already."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):
        return values
    return np.fmax.accumulate(values)


class Pyramid:
    __slots__ = ("_data", "_levels", "_rising", "bins")

    def __init__(self) -> None:
        self.bins = 0  # whole ones at level 0
        self._data: Floats = np.empty((3, 0))
        self._levels: dict[int, Floats] = {}
        self._rising: Floats | None = None

    @classmethod
    def of_summary(cls, summary: Floats) -> Pyramid:
        """A pyramid over bins that are summarised already: shape ``(3, n)``; it takes the array over."""
        made = cls()
        made._data, made.bins = summary, summary.shape[1]
        return made

    def extend(self, rows: Floats) -> None:
        self.extend_summary(summarise(rows, BIN))

    def extend_summary(self, summary: Floats) -> None:
        """Adds bins that are summarised already: shape ``(3, n)``."""
        end = self.bins + summary.shape[1]
        if end > self._data.shape[1]:
            # Doubling is harmless here: ten million rows are 39,063 bins, copied in a tenth of a millisecond.
            grown = np.empty((3, max(end, 2 * self._data.shape[1], LEAST_ROOM)))
            grown[:, : self.bins] = self.level(0)
            self._data = grown
        self._data[:, self.bins : end] = summary
        self.bins, self._rising = end, None

    def truncate(self, bins: int) -> None:
        self.bins = min(self.bins, bins)
        self._levels = {k: level[:, : self.bins >> k] for k, level in self._levels.items()}
        self._rising = None

    def make_ready(self) -> None:
        """Makes the levels that a plot of all rows reads, in the thread that opens a run."""
        self.level(max(0, self.bins.bit_length() - LEAST_BITS))

    def rising(self) -> Floats:
        if self._rising is None:
            self._rising = running_max(self.level(0)[1])
        return self._rising

    def level(self, k: int) -> Floats:
        """Minima, maxima and means at level `k`: shape ``(3, bins >> k)``, a view until the next change."""
        if k == 0:
            return self._data[:, : self.bins]
        made = self._levels.get(k, self._data[:, :0])
        part = self._data[:, made.shape[1] << k : self.bins >> k << k]
        if part.shape[1]:
            for _ in range(k):
                part = pairs(part)
            made = self._levels[k] = np.concatenate((made, part), axis=1)
        return made


def pairs(below: Floats) -> Floats:
    """Each two neighbouring bins as one: shape ``(3, 2 * n)`` to ``(3, n)``.

    The mean of a bin with gaps counts as much as its neighbour's.
    """
    left, right = below[:, ::2], below[:, 1::2]
    return np.stack((np.fmin(left[0], right[0]), np.fmax(left[1], right[1]), _pair_means(below[2])))


def _pair_means(means: Floats) -> Floats:
    left, right = means[::2], means[1::2]
    both: Floats = (left + right) / 2
    gaps = np.isnan(both)
    if gaps.any():
        both[gaps] = np.where(np.isnan(left[gaps]), right[gaps], left[gaps])
    return both
