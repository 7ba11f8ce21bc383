"""A series group: columns that share their rows, such as everything one rank reported at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np

from app.run_data.column import SLICE_ROWS, BlockCache, Column
from app.run_data.pyramid import BIN, Floats, running_max
from core.metrics.column_index import GroupIndex

# What rows are found by.
XAxis = Literal["step", "ts"]
# What a horizontal axis says: steps, time since the first point, the time of day, tokens or epochs trained.
AxisName = Literal["step", "time", "clock", "tokens", "epoch"]
# By what rows are found for each. Tokens and epochs rise with the steps, so they are another scale of these.
AXES: Final[dict[AxisName, XAxis]] = {"step": "step", "time": "ts", "clock": "ts", "tokens": "step", "epoch": "step"}
KEPT_ANSWERS: Final = 8
# One more or less of these is not half a percent.
MANY_BINS: Final = 256


class Series:
    """Rows of named numbers in the order they were reported; `step` and `ts` are names like any other.

    Where a counter runs backwards (a clock set back, a script that counts from zero in each epoch), an axis
    is the highest value so far: rows stay in the order in which they happened.
    """

    def __init__(self, columns: Mapping[str, Column] | None = None, rows: int = 0) -> None:
        self.columns: dict[str, Column] = dict(columns or {})
        self.rows = rows
        self._found: dict[tuple[XAxis, float, float], tuple[int, int]] = {}
        self._last: dict[str, float | None] = {}
        self._bounds: dict[XAxis, tuple[float, float] | None] = {}
        self._with_values: set[str] = set()
        self._blank_rows: dict[str, int] = {}
        self._positions: dict[tuple[XAxis, int, int, int], Floats] = {}

    @classmethod
    def of_files(cls, folder: Path, group: GroupIndex, cache: BlockCache) -> Series:
        """The series of a group in a run's `columns` folder: seconds of parsing saved by a little reading.

        Args:
            folder: The `columns` folder.
            group: What its index says of the group.
            cache: Where blocks that were read are kept.
        """
        columns = {name: Column.of_file(group.path(folder, name), group.rows, cache) for name in group.names}
        return cls(columns, group.rows)

    def adopt_files(self, folder: Path, group: GroupIndex, cache: BlockCache) -> None:
        """Lets go of rows in memory that the files hold by now; the points stay the same."""
        for name in self.columns.keys() & set(group.names):
            if group.rows <= self.rows:
                self.columns[name].adopt_file(group.path(folder, name), group.rows, cache)

    def append(self, rows: int, values: Mapping[str, Floats]) -> None:
        """Adds rows; a name that is missing in `values` gets NaN, a new name NaN for all rows before."""
        for name in values.keys() - self.columns.keys():
            self.columns[name] = Column(missing=self.rows)
        nothing = np.full(rows, np.nan)
        for name, column in self.columns.items():
            column.append(values.get(name, nothing))
        self.rows += rows
        self._forget_answers()

    def truncate(self, rows: int) -> None:
        self.rows = min(rows, self.rows)
        self._forget_answers()
        self._with_values.clear()
        self._blank_rows.clear()
        for column in self.columns.values():
            column.truncate(rows)

    def truncate_after(self, step: float) -> None:
        """Drops the rows of steps after `step`: a resumed run trains them again."""
        self.truncate(self.row_at("step", step, "right"))

    def row_at(self, axis: XAxis, value: float, side: Literal["left", "right"] = "left") -> int:
        """Find the first row at (`left`) or after (`right`) a value, by bisection over bins, then in one bin."""
        column = self.columns.get(axis)
        if column is None:
            return 0
        highs = column.pyramid.rising()
        found = int(np.searchsorted(highs, value, side))
        start = found * BIN
        rows = column.read(start, min(start + BIN, self.rows))
        if found and len(rows):
            rows[0] = np.fmax(rows[0], highs[found - 1])
        return start + int(np.searchsorted(running_max(rows), value, side))

    def rows_between(self, axis: XAxis, low: float, high: float) -> tuple[int, int]:
        """The rows from `low` to `high`, and one more on both sides: first, and last + 1.

        Several columns are drawn for the same view, so the last few answers are kept.
        """
        key = (axis, low, high)
        if key not in self._found:
            if len(self._found) >= KEPT_ANSWERS:
                self._found.clear()
            first = max(0, self.row_at(axis, low, "left") - 1)
            self._found[key] = (first, min(self.rows, self.row_at(axis, high, "right") + 1))
        return self._found[key]

    def rows_about(self, axis: XAxis, low: float, high: float) -> int:
        """Count the rows that `rows_between` gives; many are counted in whole bins, for which no row is read."""
        column = self.columns.get(axis)
        if column is not None:
            highs = column.pyramid.rising()
            bins = int(highs.searchsorted(high, "right") - highs.searchsorted(low))
            if bins >= MANY_BINS:
                return bins * BIN
        first, last = self.rows_between(axis, low, high)
        return last - first

    def positions(self, axis: XAxis, first: int, last: int, width: int, find: Callable[[], Floats]) -> Floats:
        """Place bins of `width` rows of ``[first, last)`` on an axis, found once for all columns in a view."""
        key = (axis, first, last, width)
        if key not in self._positions:
            if len(self._positions) >= KEPT_ANSWERS:
                self._positions.clear()
            self._positions[key] = find()
        return self._positions[key]

    def bounds(self, axis: XAxis) -> tuple[float, float] | None:
        """First and last value of an axis; None where there is none."""
        if axis not in self._bounds:
            self._bounds[axis] = self._find_bounds(axis)
        return self._bounds[axis]

    def _find_bounds(self, axis: XAxis) -> tuple[float, float] | None:
        column = self.columns.get(axis)
        if column is None or not self.rows:
            return None
        whole = column.pyramid.level(0)
        rest = column.read(whole.shape[1] * BIN, self.rows)
        first = float(column.read(0, 1)[0])
        highs = np.concatenate((whole[1], rest))
        last = float(np.fmax.reduce(highs)) if len(highs) else first
        return None if np.isnan(first) or np.isnan(last) else (first, last)

    def last(self, name: str) -> float | None:
        """Newest known value of a name within its last 256 rows; None if there is none."""
        if name not in self._last:
            column = self.columns.get(name)
            rows = np.empty(0) if column is None else column.read(self.rows - BIN, self.rows)
            known = rows[~np.isnan(rows)]
            self._last[name] = float(known[-1]) if len(known) else None
        return self._last[name]

    def has_values(self, name: str) -> bool:
        """True if a name has any finite number. Of a name without one only new rows are read."""
        column = self.columns.get(name)
        if column is None or name in self._with_values:
            return column is not None
        begin, step = self._blank_rows.get(name, 0), BIN
        while begin < self.rows:
            if np.isfinite(column.read(begin, min(begin + step, self.rows))).any():
                self._with_values.add(name)
                return True
            begin, step = min(begin + step, self.rows), SLICE_ROWS  # mostly the first few rows tell
        self._blank_rows[name] = self.rows
        return False

    def mean(self, name: str) -> float | None:
        """Mean of all known values; None if there is none."""
        parts = self._summary(name)
        if parts is None:
            return None
        (_, _, means), rest = parts
        sums, counts = np.append(means * BIN, rest), np.append(np.full(len(means), BIN), np.ones(len(rest)))
        known = ~np.isnan(sums)
        return float(sums[known].sum() / counts[known].sum()) if known.any() else None

    def peak(self, name: str) -> float | None:
        """Highest value; None if there is none."""
        parts = self._summary(name)
        highs = np.empty(0) if parts is None else np.append(parts[0][1], parts[1])
        known = highs[~np.isnan(highs)]
        return float(known.max()) if len(known) else None

    def _summary(self, name: str) -> tuple[Floats, Floats] | None:
        """The bins of a column, and the rows behind them."""
        column = self.columns.get(name)
        if column is None or not self.rows:
            return None
        bins = column.pyramid.level(0)
        return bins, column.read(bins.shape[1] * BIN, self.rows)

    def _forget_answers(self) -> None:
        self._found.clear()
        self._last.clear()
        self._bounds.clear()
        self._positions.clear()

    def value_at(self, name: str, axis: XAxis, value: float) -> float | None:
        """Last value at or before a place on an axis; None before the first row and in gaps."""
        row = self.row_at(axis, value, "right") - 1
        found = np.nan if row < 0 else self.cell(name, row)
        return None if np.isnan(found) else found

    def cell(self, name: str, row: int) -> float:
        """Value of a name in a row; NaN where there is none."""
        column = self.columns.get(name)
        return np.nan if column is None else float(column.read(row, row + 1)[0])
