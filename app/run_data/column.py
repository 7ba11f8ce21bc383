"""One column of numbers that only grows at its end: rows kept in a file, then rows in memory.

Files are read in blocks on demand and never memory-mapped: the run host truncates them when a run is
resumed, which kills a process that has the page mapped on Linux, and which Windows refuses to the host
while any process maps the file.
"""

from __future__ import annotations

import contextlib
import io
from collections import OrderedDict
from pathlib import Path
from typing import Final, TypeVar, cast

import numpy as np

from app.run_data.pyramid import BIN, Floats, Pyramid, summarise
from core.held_files import open_binary

BLOCK_ROWS: Final = 1 << 15
# Rows of a file that are binned at a time: 2 MiB stay in a processor's cache.
SLICE_ROWS: Final = 1 << 18
CHUNK_ROWS: Final = 1 << 14
# Rows that a column has room for when it begins: with thousands of names most hold a few.
LEAST_CHUNK: Final = 16
# Narrower bins are made for the view only: there are too many of them to keep all.
LEAST_KEPT_WIDTH: Final = 8
NO_BINS: Final[Floats] = np.empty((3, 0))
K = TypeVar("K")


class BlockCache:
    """The blocks of rows read last, shared by all columns of a run, so that panning does not read twice.

    Beside them it keeps what was last made of whole blocks: minima, maxima and means of small bins.

    Args:
        blocks: How many blocks of `BLOCK_ROWS` float64 to keep (256 KiB each), and as many of their summaries (at most
            96 KiB each): what a view of eight ranks needs that is just too near for the bins on disk.
    """

    def __init__(self, blocks: int = 192) -> None:
        self._limit = blocks
        self._blocks: OrderedDict[tuple[Path, int], Floats] = OrderedDict()
        self._summaries: OrderedDict[tuple[Path, int, int], Floats] = OrderedDict()

    def get(self, path: Path, block: int, rows: int) -> Floats:
        """Return at least the first `rows` rows of a block; fewer where the file is shorter."""
        key = (path, block)
        kept = self._blocks.get(key)
        if kept is None or len(kept) < rows:
            kept = np.fromfile(path, "<f8", BLOCK_ROWS, offset=block * BLOCK_ROWS * 8)
        return self._keep(self._blocks, key, kept)

    def summary(self, path: Path, block: int, width: int) -> Floats:
        """Return minima, maxima and means of a block's bins of `width` rows; rows that the file lacks are NaN."""
        key = (path, block, width)
        kept = self._summaries.get(key)
        if kept is None:
            rows = self.get(path, block, BLOCK_ROWS)
            if len(rows) < BLOCK_ROWS:
                return summarise(np.append(rows, np.full(BLOCK_ROWS - len(rows), np.nan)), width)
            kept = summarise(rows, width)
        return self._keep(self._summaries, key, kept)

    def _keep(self, kept: OrderedDict[K, Floats], key: K, values: Floats) -> Floats:
        kept[key] = values
        kept.move_to_end(key)
        while len(kept) > self._limit:
            kept.popitem(last=False)
        return values

    def forget(self, path: Path, from_row: int) -> None:
        """Drops the blocks of a file from the one that holds `from_row` on."""
        for key in [k for k in self._blocks if k[0] == path and (k[1] + 1) * BLOCK_ROWS > from_row]:
            del self._blocks[key]
        for made in [k for k in self._summaries if k[0] == path and (k[1] + 1) * BLOCK_ROWS > from_row]:
            del self._summaries[made]


class Column:
    """Numbers by row; NaN where there is none.

    Args:
        missing: Rows before the first value, when a name turns up in the middle of a run.
    """

    def __init__(self, missing: int = 0) -> None:
        self._pyramid = Pyramid()
        self._has_bins = True
        self._path: Path | None = None
        self._cache: BlockCache | None = None
        self._kept = missing
        self._chunks: list[Floats] = []
        self._tail = 0
        self._from_start: tuple[int, Floats] = (1, NO_BINS)
        if missing >= BIN:
            self._pyramid.extend_summary(np.full((3, missing // BIN), np.nan))

    @classmethod
    def of_file(cls, path: Path, rows: int, cache: BlockCache) -> Column:
        """A column whose first `rows` rows lie in `path`, as little-endian float64."""
        column = cls()
        column._path, column._kept, column._cache = path, rows, cache
        column._has_bins = False
        return column

    @property
    def pyramid(self) -> Pyramid:
        if not self._has_bins:
            self.take_bins(self.file_bins())
        return self._pyramid

    @property
    def has_bins(self) -> bool:
        return self._has_bins

    def file_bins(self, begun: Pyramid | None = None) -> Pyramid:
        """Make the bins of the rows in the file, for `take_bins`; `begun` has the first of them.

        It changes nothing, so any thread may ask.
        """
        made, whole = begun or Pyramid(), self._kept // BIN * BIN
        # Each slice lies where the one before it lay: to be given new memory takes longer than to read the file.
        first = made.bins * BIN
        memory: Floats = np.empty(max(0, min(SLICE_ROWS, whole - first)))
        with self._open_file() as file:
            file.seek(first * memory.itemsize)
            for start in range(first, whole, SLICE_ROWS):
                rows = memory[: whole - start]
                _fill(rows, file)
                made.extend(rows)
        made.make_ready()
        return made

    def take_bins(self, made: Pyramid) -> None:
        """Keeps bins of `file_bins`, also where rows were added or taken back meanwhile."""
        if self._has_bins:
            return
        made.truncate(self.rows // BIN)
        if made.bins < self._kept // BIN:
            made = self.file_bins(made)
        self._pyramid, self._has_bins = made, True
        if made.bins < self.rows // BIN:
            self._pyramid.extend(self.read(made.bins * BIN, self.rows // BIN * BIN))

    @property
    def rows(self) -> int:
        return self._kept + self._tail

    def append(self, values: Floats) -> None:
        """Adds rows at the end, in time and memory that depend on the new rows alone."""
        at = 0
        while at < len(values):
            used = self._tail % CHUNK_ROWS
            count = min(CHUNK_ROWS - used, len(values) - at)
            self._chunk_for(used, count)[used : used + count] = values[at : at + count]
            self._tail += count
            at += count
        if self._has_bins and self.rows // BIN > self._pyramid.bins:
            self._pyramid.extend(self.read(self._pyramid.bins * BIN, self.rows // BIN * BIN))

    def _chunk_for(self, used: int, more: int) -> Floats:
        """Return the last chunk with room for `more` rows behind its own; it doubles up to a whole one."""
        if used == 0:
            self._chunks.append(np.empty(0))
        chunk = self._chunks[-1]
        if len(chunk) < used + more:
            grown = np.empty(min(CHUNK_ROWS, max(LEAST_CHUNK, 2 * len(chunk), used + more)))
            grown[:used] = chunk[:used]
            self._chunks[-1] = chunk = grown
        return chunk

    def truncate(self, rows: int) -> None:
        if rows >= self.rows:
            return
        if rows < self._kept and self._path is not None and self._cache is not None:
            self._cache.forget(self._path, rows)
        self._kept = min(self._kept, rows)
        self._tail = rows - self._kept
        self._from_start = (1, NO_BINS)
        del self._chunks[-(-self._tail // CHUNK_ROWS) :]
        if self._has_bins:
            self._pyramid.truncate(rows // BIN)

    def adopt_file(self, path: Path, rows: int, cache: BlockCache) -> None:
        """Lets go of the first `rows` rows: the file holds them by now."""
        if not self._kept < rows <= self.rows:
            return
        rest = self.read(rows, self.rows)
        self._path, self._cache, self._kept = path, cache, rows
        self._chunks, self._tail = [], 0
        self._from_start = (1, NO_BINS)
        if len(rest):
            self.append(rest)

    def read(self, start: int, stop: int) -> Floats:
        """Return rows ``[start, stop)`` as a new array. Rows that their file no longer has are NaN."""
        start, stop = max(0, start), min(stop, self.rows)
        values = np.full(max(0, stop - start), np.nan)
        if start < self._kept and self._path is not None and self._cache is not None:
            self._read_file(self._path, self._cache, values, start, min(stop, self._kept))
        position = max(start, self._kept)
        while position < stop:
            chunk, offset = divmod(position - self._kept, CHUNK_ROWS)
            count = min(CHUNK_ROWS - offset, stop - position)
            values[position - start : position - start + count] = self._chunks[chunk][offset : offset + count]
            position += count
        return values

    def summary(self, start: int, stop: int, width: int) -> Floats:
        """Return minima, maxima and means of bins: shape ``(3, (stop - start) // width)``.

        Args:
            start: First row; a multiple of `width`.
            stop: Behind the last row; a multiple of `width`.
            width: Rows in a bin; a power of two, at most `BLOCK_ROWS`.
        """
        path, cache = self._path, self._cache
        if path is None and start == 0:
            return self._summary_from_start(stop, width)
        whole = self._kept // BLOCK_ROWS * BLOCK_ROWS  # behind it the file may still grow
        if path is None or cache is None or width < LEAST_KEPT_WIDTH or start >= min(stop, whole):
            return summarise(self.read(start, stop), width)
        parts: list[Floats] = []
        for block in range(start // BLOCK_ROWS, -(-min(stop, whole) // BLOCK_ROWS)):
            first = block * BLOCK_ROWS
            low, high = (max(start, first) - first) // width, (min(stop, first + BLOCK_ROWS) - first) // width
            try:
                parts.append(cache.summary(path, block, width)[:, low:high])
            except OSError:  # as when reading rows
                parts.append(np.full((3, high - low), np.nan))
        if stop > whole:
            parts.append(summarise(self.read(whole, stop), width))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _summary_from_start(self, stop: int, width: int) -> Floats:
        """Return bins from the first row on, and keep those of the width that was asked for last.

        A chart that shows all of a growing run asks for them with each picture.
        """
        kept_width, kept = self._from_start
        known = kept.shape[1] * width if kept_width == width else 0
        if known < stop:
            new = summarise(self.read(known, stop), width)
            kept = np.concatenate((kept, new), axis=1) if known else new
            self._from_start = (width, kept)
        return kept[:, : stop // width]

    def _open_file(self) -> io.BufferedIOBase:
        """Open the file past the cache: all of it is read once. A removed one has no rows."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                return cast(io.BufferedReader, open_binary(self._path, timeout_s=0))
        return io.BytesIO()

    def _read_file(self, path: Path, cache: BlockCache, values: Floats, start: int, stop: int) -> None:
        for block in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
            first = block * BLOCK_ROWS
            low, high = max(start, first), min(stop, first + BLOCK_ROWS)
            try:
                rows = cache.get(path, block, high - first)[low - first : high - first]
            except OSError:
                # Removed under us (a rebuild is running): gaps until the run is opened again.
                continue
            values[low - start : low - start + len(rows)] = rows


def same_rows(one: Column, other: Column, first: int, last: int) -> bool:
    """True where two columns have the same numbers in rows ``[first, last)``, judged by whole bins."""
    begin, end = -(-first // BIN), last // BIN
    if begin >= end:
        return _is_same(one.read(first, last), other.read(first, last))
    bins = (column.pyramid.level(0)[:, begin:end] for column in (one, other))
    parts = ((first, begin * BIN), (end * BIN, last))
    return _is_same(*bins) and all(_is_same(one.read(*part), other.read(*part)) for part in parts)


def _is_same(one: Floats, other: Floats) -> bool:
    return bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())


def _fill(rows: Floats, file: io.BufferedIOBase) -> None:
    count = 0
    with contextlib.suppress(OSError):
        count = file.readinto(rows.data.cast("B")) // rows.itemsize
    rows[count:] = np.nan
