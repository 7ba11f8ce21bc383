"""Documents as pieces of at most 4 MiB and a line, so that no text, however long, is in memory as a whole.

Where one piece ends and the next begins depends on the text alone: tokenizers see the same pieces whether a text is
read from a plain file, packed, or out of a row.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from core.data.formats import Packing, check_text
from core.errors import DatasetError
from core.files.atomic import explain
from workers.data.reading.columns import row_text
from workers.data.reading.delimited import delimited_rows
from workers.data.reading.json_stream import Cell
from workers.data.reading.layout import BOM, Layout
from workers.data.reading.packed import is_damage, open_packed
from workers.data.reading.row_counts import Bad, RowCounts
from workers.data.reading.rows import Row, json_file_rows, jsonl_rows, table_rows

PIECE_BYTES: Final = 1 << 22
# A piece extends to its last line's end, but not further than this.
MAX_LINE_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 18

# Called now and then with the bytes that have been read of a file, packed as it is.
OnRead = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a dataset.

    Attributes:
        name: Its path within the dataset, with forward slashes.
        column: Its text column; empty for text.
    """

    path: Path
    name: str
    packing: Packing
    layout: Layout
    column: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice of a document; `ends`: the document ends behind it."""

    data: bytes
    ends: bool


def source_pieces(source: Source, counts: RowCounts, on_read: OnRead = lambda _: None) -> Iterator[Piece]:
    """The documents of a file, in order; raises `DatasetError` where it cannot be read or is not text."""
    try:
        if source.layout.form == "text":
            yield from _text_pieces(source, counts, on_read)
        else:
            yield from _row_pieces(source, counts, on_read)
    except Exception as error:
        if not is_damage(error):
            raise read_error(source.path, error) from None
        counts.rows += 1
        counts.add_bad("cut_off", source.name)
        if source.layout.form == "text":
            yield Piece(b"", True)


def read_error(path: Path, error: Exception) -> Exception:
    """The error for a file that cannot be read: a `DatasetError` for the system's, else the error itself."""
    if not isinstance(error, OSError):
        return error
    failed = explain(error, f"{path} could not be read")
    return DatasetError(failed.cause, "Check that you may read it.", title="The dataset cannot be read")


def source_rows(source: Source, on_read: OnRead = lambda _: None) -> Iterator[Row | Bad]:
    layout = source.layout
    if layout.form in ("parquet", "arrow"):
        columns = [source.column.partition(".")[0], source.column] if source.column else []
        yield from table_rows(source.path, columns, on_read, arrow=layout.form == "arrow")
        return
    with open_packed(source.path, source.packing) as (stream, position):
        if layout.dialect is not None:
            rows: Iterator[Row | Bad] = delimited_rows(stream, layout.dialect)
        elif layout.json is not None:
            rows = json_file_rows(stream, layout.json)
        else:
            rows = jsonl_rows(stream)
        for row in rows:
            on_read(position())
            yield row


def _text_pieces(source: Source, counts: RowCounts, on_read: OnRead) -> Iterator[Piece]:
    """A text file: one document, its lines counted as rows. Lines that are not UTF-8 are counted as bad and kept."""
    lines_before, is_beginning = counts.rows, True
    with open_packed(source.path, source.packing) as (stream, position):
        counts.documents += 1
        if source.layout.has_bom:
            stream.read(len(BOM))
        for data in cut_text(stream):
            if source.packing:  # plain files were looked at before
                check_text(source.name, data, is_beginning=is_beginning)
                is_beginning = False
            _count_lines(data, source.name, lines_before, counts)
            on_read(position())
            yield Piece(data, False)
    yield Piece(b"", True)


def cut_text(stream: IO[bytes]) -> Iterator[bytes]:
    """The pieces of a text. A line that does not end is cut between two characters."""
    left = b""
    while True:
        block = _read_on(stream, left)
        line = stream.readline(MAX_LINE_BYTES) if len(block) == PIECE_BYTES else b""
        block += line
        goes_on = len(line) == MAX_LINE_BYTES and not line.endswith(b"\n")
        cut = len(block) - (_begun_character(block[-4:]) if goes_on else 0)
        left = block[cut:]
        if not cut:
            return
        yield block[:cut]


def _read_on(stream: IO[bytes], begun: bytes) -> bytes:
    """`begun` with the following bytes, `PIECE_BYTES` in all unless the text ends before."""
    # In small reads: one of 4 MiB from a file of 1 KiB keeps 4 MiB under Windows as long as its bytes live (seen in
    # Wine), and 512 such pieces are a batch.
    parts, missing = [begun], PIECE_BYTES - len(begun)
    while missing > 0 and (more := stream.read(min(_READ_BYTES, missing))):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def _begun_character(tail: bytes) -> int:
    """The number of bytes at the end of `tail` that begin an incomplete UTF-8 character."""
    for back in range(1, min(3, len(tail)) + 1):
        byte = tail[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if length > back else 0
    return 0


def _count_lines(piece: bytes, name: str, lines_before: int, counts: RowCounts) -> None:
    """Count lines as rows, and those that are not UTF-8 as bad; `lines_before` are those of earlier files."""
    lines = piece.count(b"\n") + (not piece.endswith(b"\n"))
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        for number, line in enumerate(piece.split(b"\n"), counts.rows - lines_before + 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                counts.add_bad("kept", f"{name}, line {number}")
    counts.rows += lines


def _row_pieces(source: Source, counts: RowCounts, on_read: OnRead) -> Iterator[Piece]:
    rows_before, dialect = counts.rows, source.layout.dialect
    header = source.column if dialect is not None and dialect.has_header else None
    for row in source_rows(source, on_read):
        if isinstance(row, Cell) and source.column.partition(".")[0] not in row and source.column not in row:
            continue  # of another column
        counts.rows += 1
        if isinstance(row, Bad):
            counts.add_bad(row.kind, f"{source.name}, {row.where}")
            continue
        text, problem = row_text(row, source.column)
        if not problem:
            try:
                data = text.encode("utf-8")
            except UnicodeEncodeError:  # bytes that are no UTF-8, or half of a surrogate pair
                problem = "invalid_utf8"
        if problem:
            counts.add_bad(problem, f"{source.name}, row {counts.rows - rows_before}")
            continue
        counts.add_document(data)
        counts.headers += text == header
        if len(data) <= PIECE_BYTES:
            yield Piece(data, True)
            continue
        for piece in cut_text(io.BytesIO(data)):
            yield Piece(piece, False)
        yield Piece(b"", True)
