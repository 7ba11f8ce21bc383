"""Makes bins of a run's long columns, and gives them to its columns: see `long_bins`, which runs it as a program."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from app.run_data.column import BlockCache
from app.run_data.long_bins import BIN_ROWS, VALUES, GroupBins, KeptBins, group_bins, head_line, read_kept
from app.run_data.pyramid import Floats, Pyramid
from app.run_data.series import Series
from core.metrics.column_index import GroupIndex, read_index

VALUE: Final = "<f8"


def write_bins(folder: Path, rows: int, names: Collection[str], output: BinaryIO) -> None:
    """Write the bins of these columns in groups of at least `rows` rows, as `KeptBins` reads them.

    Bins that are kept already are continued.
    """
    index = read_index(folder)
    if index is None:
        return
    kept = read_kept(folder, index)
    begun = {} if kept is None else _pyramids(kept)
    groups: list[GroupBins] = []
    values: list[Floats] = []
    for group in index.groups.values():
        if group.rows >= rows:
            head = group_bins(folder, group, [name for name in group.names if name in names])
            if head is not None:
                groups.append(head)
                values += _made(folder, group, head, begun)
    crc32 = 0
    for bins in values:
        crc32 = zlib.crc32(bins.data, crc32)
    output.write(head_line(groups, crc32))
    for bins in values:
        output.write(bins.data)


def take_bins(kept: KeptBins, groups: dict[str, Series]) -> None:
    """Gives a run's columns their bins; rows that came since are binned now.

    Without much ado: each call of the system, and each sum over many numbers, gives Python's lock up to a thread that
    imports, and gets it back 5 ms later.
    """
    for (group, name), bins in _pyramids(kept).items():
        groups[group].columns[name].take_bins(bins)


def _made(folder: Path, group: GroupIndex, head: GroupBins, begun: dict[tuple[str, str], Pyramid]) -> list[Floats]:
    series, found = Series.of_files(folder, group, BlockCache()), []
    for name in head.names:
        bins = series.columns[name].file_bins(begun.get((group.name, name)))
        found.append(np.ascontiguousarray(bins.level(0)[:, : head.rows // BIN_ROWS], VALUE))
    return found


def _pyramids(kept: KeptBins) -> dict[tuple[str, str], Pyramid]:
    found: dict[tuple[str, str], Pyramid] = {}
    values = np.frombuffer(kept.values, VALUE).astype(np.float64)  # its own: bins are added behind them
    at = 0
    for group in kept.groups:
        size = group.column_bytes // values.itemsize
        for name in group.names:
            found[group.name, name] = Pyramid.of_summary(values[at : at + size].reshape(VALUES, -1))
            at += size
    return found


def main(arguments: list[str]) -> int:
    folder, rows, *names = arguments
    write_bins(Path(folder), int(rows), names, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
