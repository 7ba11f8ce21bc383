"""A long packed text, unpacked a stretch at a time: one process must read it from its start, many can tokenise it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from core.files.atomic import explain
from workers.data.reading.corpus import Source
from workers.data.reading.packed import PackedFile, is_damage
from workers.data.reading.pieces import Part, PieceReader, refuse_nul
from workers.data.reading.row_counts import RowCounts

_LINE_BYTES: Final = 1 << 20
_TICK_BYTES: Final = 1 << 22

Blocks = Iterator[tuple[bytes, bool]]
"""The text, a little at a time, and whether a stretch may end behind it."""


class _Stretch(NamedTuple):
    """A file, its bytes, and how many of the packed file's it took."""

    path: Path
    size: int
    packed_size: int


def stretches(
    source: Source, names: Path, least_bytes: int, counts: RowCounts, tick: Callable[[], None]
) -> Iterator[Part]:
    """The text as parts, each a plain file that its reader removes.

    A stretch is written when the one before it is asked for, so few of them lie on the disk. Where they end (text
    between pieces, JSON between lines) depends on the text alone.

    Args:
        source: A packed file of text, or of lines of JSON.
        names: Where the stretches go: the files' common start.
        least_bytes: What each but the last has at least.
        counts: Is told of a file that is cut off.
        tick: Is called now and then while a stretch is written; may raise to end it all.

    Raises:
        DatasetError: What is packed is not text.
        PreflightError: The disk is full or refuses, or the package that unpacks is missing.
        OSError: The packed file cannot be read.
    """
    start = 0
    for stretch, last in _with_last(_written(source, names, least_bytes, counts, tick)):
        stop = start + stretch.size
        yield Part(
            path=str(stretch.path),
            name=source.name,
            form=source.form,
            packing="",
            column=source.column,
            start=start,
            stop=stop,
            last=last,
            size_bytes=stretch.packed_size,
            unpacked=True,
        )
        start = stop


def _written(
    source: Source, names: Path, least_bytes: int, counts: RowCounts, tick: Callable[[], None]
) -> Iterator[_Stretch]:
    """One stretch at least, be it empty."""
    with PackedFile(source.path, source.packing) as file:
        blocks, read = _blocks(file, source, counts), 0
        for number in itertools.count():
            path = names.with_name(f"{names.name}-{number:06d}.unpacked")
            size = _write(path, blocks, least_bytes, tick)
            if number and not size:
                path.unlink()
                return
            yield _Stretch(path, size, file.position - read)
            read = file.position


def _write(path: Path, blocks: Blocks, least_bytes: int, tick: Callable[[], None]) -> int:
    size = ticked = 0
    try:
        out = path.open("wb")
    except OSError as error:
        raise explain(error, f"{path} could not be written") from error
    with out:
        for block, may_end in blocks:
            try:
                out.write(block)
            except OSError as error:
                raise explain(error, f"{path} could not be written") from error
            size += len(block)
            if size - ticked >= _TICK_BYTES:
                ticked = size
                tick()
            if may_end and size >= least_bytes:
                break
    return size


def _blocks(file: PackedFile, source: Source, counts: RowCounts) -> Blocks:
    try:
        if source.form == "text":
            for piece in iter(PieceReader(file.stream).next, b""):
                refuse_nul(piece, source.name)
                yield piece, True
        else:
            for line in iter(lambda: file.stream.readline(_LINE_BYTES), b""):
                yield line, line.endswith(b"\n")
    except Exception as error:
        if not is_damage(error):
            raise
        counts.rows += 1
        counts.add_bad("cut_off", source.name)


def _with_last(items: Iterator[_Stretch]) -> Iterator[tuple[_Stretch, bool]]:
    before = next(items)
    for item in items:
        yield before, False
        before = item
    yield before, True
