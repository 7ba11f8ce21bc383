"""Opens a run's `columns/` folder: seconds of parsing saved by a few hundred kilobytes of reading."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from app.run_data.column import BlockCache, Column
from app.run_data.series import Series
from core.metrics.column_index import GroupIndex


def open_series(folder: Path, group: GroupIndex, cache: BlockCache, plotted: Collection[str] = ()) -> Series:
    """A series over a group's files.

    Args:
        folder: The run's `columns` folder.
        group: What its index says of the group.
        cache: Where blocks that were read are kept.
        plotted: Columns whose bins are made at once; those of others when they are asked for.
    """
    columns = {name: Column.of_file(_values(folder, group, name), group.rows, cache) for name in group.names}
    for name in columns.keys() & set(plotted):
        columns[name].pyramid.make_ready()
    return Series(columns, group.rows)


def adopt(series: Series, folder: Path, group: GroupIndex, cache: BlockCache) -> None:
    """Lets a series that grew in memory let go of what the files hold by now; its points stay the same."""
    for name in group.names:
        column = series.columns.get(name)
        if column is not None and group.rows <= series.rows:
            column.adopt_file(_values(folder, group, name), group.rows, cache)


def _values(folder: Path, group: GroupIndex, name: str) -> Path:
    return folder / group.folder / f"{group.stem(name)}.f64"
