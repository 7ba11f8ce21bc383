"""Documents as pieces of at most 4 MiB and a line, so that no text, however long, is in memory as a whole.

Where one piece ends and the next begins depends on the text alone: tokenizers see the same pieces whether a text is
read from a plain file, in parts, packed, or out of a row.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from core.data.formats import Form, Packing
from core.errors import DatasetError
from core.files.atomic import explain
from workers.data.reading.columns import row_text
from workers.data.reading.json_stream import Cell
from workers.data.reading.packed import PackedFile, is_damage
from workers.data.reading.row_counts import RowCounts
from workers.data.reading.rows import Bad, Row, csv_rows, json_file_rows, jsonl_rows, table_rows

PIECE_BYTES: Final = 1 << 22
MAX_LINE_BYTES: Final = 1 << 20
"""A piece extends to its last line's end, but not further than this."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document.

    Attributes:
        data: Its bytes.
        ends: The document ends behind them.
    """

    data: bytes
    ends: bool


@dataclass(frozen=True, slots=True)
class Part:
    """What is read in one go: a file, or a part of one that can be read by itself.

    Attributes:
        path: The file.
        name: What messages call it.
        form: How its rows are written; "text" too for a JSON document without rows.
        packing: How it is packed.
        column: The text's column; empty for text.
        start, stop: Bytes of a text or of lines, row groups of Parquet; `stop` None: to the end.
        last: The file ends with it.
        size_bytes: Bytes of the file that it stands for, for progress.
        unpacked: `path` holds a stretch of what is packed into the file, the bytes from `start` to `stop`, and is
            removed when it has been read.
    """

    path: str
    name: str
    form: Form
    packing: Packing
    column: str = ""
    start: int = 0
    stop: int | None = None
    last: bool = True
    size_bytes: int = 0
    unpacked: bool = False

    @property
    def seek_to(self) -> int:
        """Where in the file at `path` it begins."""
        return 0 if self.unpacked else self.start

    def remove_unpacked(self) -> None:
        """Removes its file if that is a stretch."""
        if self.unpacked:
            with contextlib.suppress(OSError):  # a scanner holds it: it goes with its folder
                Path(self.path).unlink()


def part_pieces(part: Part, counts: RowCounts, on_read: Callable[[int], None] = lambda _: None) -> Iterator[Piece]:
    """The documents of a part, in order.

    Args:
        part: What is read.
        counts: Gets rows, documents, and what is wrong.
        on_read: Called now and then with the bytes of the file that have been read.

    Raises:
        DatasetError: The file cannot be read, or packed into it is something other than text.
    """
    try:
        if part.form == "text":
            yield from _text_pieces(part, counts, on_read)
        else:
            yield from _document_pieces(part_rows(part, on_read), part, counts)
    except Exception as error:
        if not is_damage(error):
            raise read_error(part.path, error) from None
        counts.rows += 1
        counts.add_bad("cut_off", part.name)
        if part.form == "text":
            yield Piece(b"", True)


def read_error(path: Path | str, error: Exception) -> Exception:
    """What is raised where a file cannot be read: a `DatasetError` for what the system says, else the error itself."""
    if not isinstance(error, OSError):
        return error
    failed = explain(error, f"{path} could not be read")
    return DatasetError(failed.cause, "Check that you may read it.", title="The dataset cannot be read")


def part_rows(part: Part, on_read: Callable[[int], None] = lambda _: None) -> Iterator[Row | Bad]:
    """The rows of a part that is not text.

    Args:
        part: What is read.
        on_read: As for `part_pieces`.

    Raises:
        NotRowsError: It is a JSON document without rows.
        OSError: The file cannot be read.
    """
    if part.form in ("parquet", "arrow"):
        groups = None if part.stop is None else (part.start, part.stop)
        columns = [part.column.partition(".")[0], part.column] if part.column else []
        yield from table_rows(part.path, groups, columns, stream=part.form == "arrow")
        return
    with PackedFile(Path(part.path), part.packing) as file:
        if part.form == "jsonl":
            if part.seek_to:
                file.stream.seek(part.seek_to)
            rows = jsonl_rows(file.stream, part.start, part.stop)
        elif part.form == "json":
            rows = json_file_rows(file.stream)
        else:
            rows = csv_rows(file.stream, "\t" if part.form == "tsv" else ",")
        for row in rows:
            on_read(file.position - part.seek_to)
            yield row


def _text_pieces(part: Part, counts: RowCounts, on_read: Callable[[int], None]) -> Iterator[Piece]:
    """A text file: one document, its lines counted as rows. Lines that are not UTF-8 are counted as bad and kept."""
    at = part.start
    with PackedFile(Path(part.path), part.packing) as file:
        if part.seek_to:
            file.stream.seek(part.seek_to)
        reader = PieceReader(file.stream)
        if part.last:
            counts.documents += 1
        while (part.stop is None or at < part.stop) and (piece := reader.next()):
            if part.packing:
                refuse_nul(piece, part.name)
            _count_lines(piece, at, part, counts)
            at += len(piece)
            on_read(file.position - part.seek_to)
            yield Piece(piece, False)
    if part.last:
        yield Piece(b"", True)


def refuse_nul(piece: bytes, name: str) -> None:
    """Refuses what was packed if it is not text; plain files are looked at before.

    Raises:
        DatasetError: There are NUL bytes in it.
    """
    if b"\0" in piece:
        raise DatasetError(
            f"{name} contains data that is not text: it has NUL bytes.",
            "Choose a file with text in it.",
            title="The dataset is not text",
        )


class PieceReader:
    """The pieces of a text, one after the other.

    Args:
        stream: Stands at the start of a piece.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = b""

    def next(self) -> bytes:
        """The next piece; empty at the text's end. A line that does not end is cut between two characters."""
        block = self._left
        while len(block) < PIECE_BYTES and (more := self._stream.read(PIECE_BYTES - len(block))):
            block += more  # unpacking may give less than was requested
        line = self._stream.readline(MAX_LINE_BYTES) if len(block) == PIECE_BYTES else b""
        block += line
        cut = len(block) - (begun_character(block[-4:]) if _goes_on(line) else 0)
        self._left = block[cut:]
        return block[:cut]


def piece_ends(stream: IO[bytes], size_bytes: int) -> Iterator[int]:
    """Where the pieces of a plain text end, found without reading all of it.

    Args:
        stream: The text.
        size_bytes: Its size.
    """
    at = 0
    while at < size_bytes:
        tail_at = min(at + PIECE_BYTES, size_bytes) - min(4, PIECE_BYTES)
        stream.seek(max(at, tail_at))
        tail = stream.read(min(at + PIECE_BYTES, size_bytes) - max(at, tail_at))
        line = stream.readline(MAX_LINE_BYTES)
        at = stream.tell() - (begun_character((tail + line)[-4:]) if _goes_on(line) else 0)
        yield at


def _goes_on(line: bytes) -> bool:
    return len(line) == MAX_LINE_BYTES and not line.endswith(b"\n")


def begun_character(tail: bytes) -> int:
    """How many bytes at the end of `tail` are the start of a UTF-8 character that is not complete."""
    for back in range(1, min(3, len(tail)) + 1):
        byte = tail[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if length > back else 0
    return 0


def _count_lines(piece: bytes, at: int, part: Part, counts: RowCounts) -> None:
    """Counts lines as rows, and those that are not UTF-8 as bad; `at` is the piece's place in the text, in bytes."""
    lines = piece.count(b"\n") + (not piece.endswith(b"\n"))
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        for number, line in enumerate(piece.split(b"\n"), counts.rows + 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                where = (
                    f"byte {at}" if part.start else f"line {number}"
                )  # a later part does not know its lines' numbers
                counts.add_bad("invalid_utf8", f"{part.name}, {where}")
            at += len(line) + 1
    counts.rows += lines


def _document_pieces(rows: Iterator[Row | Bad], part: Part, counts: RowCounts) -> Iterator[Piece]:
    for row in rows:
        if isinstance(row, Cell) and part.column.partition(".")[0] not in row and part.column not in row:
            continue  # of another column
        counts.rows += 1
        if isinstance(row, Bad):
            counts.add_bad(row.kind, f"{part.name}, {row.where}")
            continue
        text, problem = row_text(row, part.column)
        if not problem:
            try:
                data = text.encode("utf-8")
            except UnicodeEncodeError:  # bytes that are no UTF-8, or half of a surrogate pair
                problem = "invalid_utf8"
        if problem:
            counts.add_bad(problem, f"{part.name}, row {counts.rows}")
            continue
        counts.documents += 1
        yield from document_pieces(data)


def document_pieces(data: bytes) -> Iterator[Piece]:
    """A document that is in memory already."""
    if len(data) <= PIECE_BYTES:
        yield Piece(data, True)
        return
    reader = PieceReader(io.BytesIO(data))
    while piece := reader.next():
        yield Piece(piece, False)
    yield Piece(b"", True)
