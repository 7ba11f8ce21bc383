"""Bins of a run's long columns as bytes, and the program that makes them: see `bins_process`.

One line of JSON says which run and which columns, the bins of one after the other follow it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from app.run_data.column import BlockCache, Column
from app.run_data.pyramid import Pyramid
from core.metrics.column_index import ColumnsIndex, read_index

if TYPE_CHECKING:
    from app.run_data.run_series import RunSeries


def write_bins(folder: Path, rows: int, names: Collection[str], output: BinaryIO) -> None:
    """Writes the bins of the columns of these names with `rows` rows or more."""
    index, cache = read_index(folder), BlockCache()
    if index is None:
        return
    made: list[tuple[str, str, Pyramid]] = []
    for group in index.groups.values():
        for name in group.names if group.rows >= rows else ():
            if name in names:
                bins = Column.of_file(group.path(folder, name), group.rows, cache).file_bins()
                made.append((group.name, name, bins))
    columns = [(group, name, bins.bins) for group, name, bins in made]
    output.write(json.dumps({"of": _identity(index), "columns": columns}).encode() + b"\n")
    for _, _, bins in made:
        output.write(np.ascontiguousarray(bins.level(0), "<f8").data)


def take_bins(written: bytes, run: RunSeries, index: ColumnsIndex) -> None:
    """Gives a run's columns what `write_bins` wrote, if that was of the same columns."""
    end = written.find(b"\n")
    head = json.loads(written[:end]) if end > 0 else {}
    if head.get("of") != _identity(index):
        return
    at = end + 1
    for group, name, count in head["columns"]:
        values = np.frombuffer(written, "<f8", 3 * count, at).reshape(3, count)
        at += values.nbytes
        bins = Pyramid()
        bins.extend_summary(values)
        run.groups[group].columns[name].take_bins(bins)


def _identity(index: ColumnsIndex) -> list[object]:
    """A run that was resumed from an earlier step meanwhile has other rows in the same files."""
    return [index.source_bytes, index.source_tail_sha256]


def main(arguments: Sequence[str]) -> int:
    """Writes the bins to the standard output."""
    folder, rows, *names = arguments
    write_bins(Path(folder), int(rows), names, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
