"""Cuts a dataset into parts that can be read by themselves: one process tokenises one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from core.errors import DatasetError
from core.files.atomic import explain
from workers.data.reading.corpus import Source
from workers.data.reading.pieces import Part, piece_ends
from workers.data.reading.row_counts import RowCounts
from workers.data.reading.unpacking import stretches

_CUT_FORMS: Final = ("text", "jsonl")
PART_BYTES: Final = 32 << 20
LONG_PACKED_BYTES: Final = 8 << 20
"""A packed file of text or lines that is longer is unpacked into parts; a shorter one is one part."""


def cut(
    sources: Sequence[Source], folder: Path, counts: RowCounts, tick: Callable[[], None] = lambda: None
) -> Iterator[Part]:
    """All parts, in the order of their tokens; which they are depends on the files alone.

    Plain text is cut between pieces, lines of JSON between lines, Parquet between row groups; of these, long packed
    files are unpacked into `folder` on the way. What can only be read from its start (other packed files, CSV with its
    line ends inside quotes, JSON documents) is one part a file.

    Args:
        sources: The files.
        folder: Where stretches of packed files go.
        counts: Is told of packed files that are cut off.
        tick: Is called now and then while one is unpacked; may raise to end it all.

    Raises:
        DatasetError: A file cannot be read.
        PreflightError: The disk is full or refuses, or a package is missing.
    """
    for number, source in enumerate(sources):
        try:
            if source.packing and source.form in _CUT_FORMS and source.size_bytes > LONG_PACKED_BYTES:
                yield from stretches(source, folder / f"{number:06d}", PART_BYTES, counts, tick)
            else:
                yield from _split_source(source)
        except OSError as error:
            failed = explain(error, f"{source.path} could not be read")
            raise DatasetError(
                failed.cause, "Check that you may read it.", title="The dataset cannot be read"
            ) from None


def about_how_many(sources: Sequence[Source]) -> int:
    """How many parts there will be, more or less: what is packed, as Parquet is, is three times its file, as a rule."""
    return sum(_about_how_many(source) for source in sources)


def _about_how_many(source: Source) -> int:
    if source.form not in (*_CUT_FORMS, "parquet"):
        return 1
    unpacked = source.size_bytes * (3 if source.packing or source.form == "parquet" else 1)
    return max(1, -(-unpacked // PART_BYTES))


def _split_source(source: Source) -> Iterator[Part]:
    whole = source.whole()
    if source.form == "parquet":
        yield from _row_groups(whole)
    elif source.packing or source.form not in _CUT_FORMS or source.size_bytes <= PART_BYTES:
        yield whole
    else:
        start = 0
        for stop in _ends(source):
            yield replace(whole, start=start, stop=stop, last=stop == source.size_bytes, size_bytes=stop - start)
            start = stop


def _ends(source: Source) -> Iterator[int]:
    """Where parts of a plain file end: the first place after that many bytes at which one may."""
    with source.path.open("rb") as file:
        if source.form == "text":
            start = 0
            for end in piece_ends(file, source.size_bytes):
                if end - start >= PART_BYTES or end >= source.size_bytes:
                    yield end
                    start = end
            return
        end = 0
        while end < source.size_bytes:
            file.seek(min(end + PART_BYTES, source.size_bytes))
            while (line := file.readline(1 << 20)) and not line.endswith(b"\n"):
                continue
            end = file.tell()
            yield end


def _row_groups(whole: Part) -> Iterator[Part]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(whole.path) as file:
            groups = file.metadata.num_row_groups
            sizes = [file.metadata.row_group(number).total_byte_size for number in range(groups)]
    except (pyarrow.ArrowException, OSError):
        yield whole  # it is counted as bad when it is read
        return
    total, start, held = max(1, sum(sizes)), 0, 0
    for number, size in enumerate(sizes, 1):
        held += size
        if held >= PART_BYTES or number == groups:
            share = whole.size_bytes * held // total
            yield replace(whole, start=start, stop=number, last=number == groups, size_bytes=share)
            start, held = number, 0
