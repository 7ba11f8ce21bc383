"""Opens a run's `columns/` folder: seconds of parsing saved by a few hundred kilobytes of reading."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from app.run_data.column import BlockCache, Column
from app.run_data.pyramid import BIN, Floats
from app.run_data.series import Series
from core.metrics.column_index import BIN_ROWS, GroupIndex

MEAN_SLICE_ROWS: Final = 1 << 18

if BIN != BIN_ROWS:
    raise ImportError(f"a bin has {BIN} rows here and {BIN_ROWS} in the columns on disk")


def open_series(folder: Path, group: GroupIndex, cache: BlockCache, plotted: Collection[str] = ()) -> Series:
    """A series over a group's files.

    Args:
        folder: The run's `columns` folder.
        group: What its index says of the group.
        cache: Where blocks that were read are kept.
        plotted: Columns whose bins are read at once; those of others when they are asked for.
    """
    columns = {
        name: Column.of_file(_values(folder, group, name), group.rows, partial(_minmax, folder, group, name), cache)
        for name in group.names
    }
    for name in columns.keys() & set(plotted):
        columns[name].pyramid.make_ready()
    return Series(columns, group.rows)


def adopt(series: Series, folder: Path, group: GroupIndex, cache: BlockCache) -> None:
    """Lets a series that grew in memory let go of what the files hold by now; its points stay the same."""
    for name in group.names:
        column = series.columns.get(name)
        if column is not None and group.rows <= series.rows:
            column.adopt_file(_values(folder, group, name), group.rows, cache)


def bin_means(folder: Path, group: GroupIndex, name: str) -> Floats:
    """The mean of each whole bin of a column, read once from end to end (ten million rows: a tenth of a second).

    Raises:
        OSError: The file is gone.
    """
    total = group.rows // BIN * BIN
    means = np.full(total // BIN, np.nan)
    for start in range(0, total, MEAN_SLICE_ROWS):
        rows = np.fromfile(_values(folder, group, name), "<f8", min(MEAN_SLICE_ROWS, total - start), offset=start * 8)
        whole = len(rows) // BIN
        bins = rows[: whole * BIN].reshape(-1, BIN)
        slice_means = bins.mean(axis=1)
        for ragged in np.flatnonzero(np.isnan(slice_means)):
            known = bins[ragged][~np.isnan(bins[ragged])]
            slice_means[ragged] = known.mean() if len(known) else np.nan
        means[start // BIN : start // BIN + whole] = slice_means
    return means


def _minmax(folder: Path, group: GroupIndex, name: str) -> Floats:
    """The bins on disk; none if they are gone, then they are made from the rows."""
    try:
        pairs = np.fromfile(folder / group.folder / f"{group.stem(name)}.minmax.f64", "<f8", group.rows // BIN * 2)
    except OSError:
        return np.empty((0, 2))
    return pairs[: len(pairs) // 2 * 2].reshape(-1, 2)


def _values(folder: Path, group: GroupIndex, name: str) -> Path:
    return folder / group.folder / f"{group.stem(name)}.f64"
