"""The rows of a file, whatever it is: one after the other, bad ones as a `Bad`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from workers.data.reading.json_stream import BrokenJsonError, json_rows

MAX_ROW_BYTES: Final = 64 << 20
_TABLE_ROWS: Final = 512
VALUE: Final = "value"
"""The column of rows that are a bare text, without a name."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that cannot be used.

    Attributes:
        kind: See `workers.data.reading.row_counts.BAD_ROW_TEXTS`.
        where: Its place in the file, as text.
    """

    kind: str
    where: str


Row = Mapping[str, Any]


def jsonl_rows(stream: IO[bytes]) -> Iterator[Row | Bad]:
    """One row a line."""
    number = 0
    while line := stream.readline(MAX_ROW_BYTES):
        number += 1
        where = f"line {number}"
        if len(line) >= MAX_ROW_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_ROW_BYTES)) and not rest.endswith(b"\n"):
                continue
            yield Bad("too_long", where)
            continue
        yield _line_row(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, where)


def _line_row(line: bytes, where: str) -> Row | Bad:
    if not line.strip():
        return Bad("empty", where)
    try:
        return _as_row(json.loads(line.decode("utf-8")), where)
    except UnicodeDecodeError:
        return Bad("invalid_utf8", where)
    except (ValueError, RecursionError):
        return Bad("broken", where)


def json_file_rows(stream: IO[bytes]) -> Iterator[Row | Bad]:
    """The rows of a JSON document.

    Raises:
        NotRowsError: It has none.
    """
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        number = 0
        try:
            for number, value in enumerate(json_rows(text), 1):
                yield _as_row(value, f"row {number}")
        except BrokenJsonError as error:
            yield Bad("broken", f"from row {number + 1} on ({error})")


def _as_row(value: Any, where: str) -> Row | Bad:
    if isinstance(value, str):
        return {VALUE: value}
    return value if isinstance(value, dict) else Bad("broken", where)


def csv_rows(stream: IO[bytes], delimiter: str) -> Iterator[Row | Bad]:
    """The rows of a table whose first line names the columns."""
    csv.field_size_limit(MAX_ROW_BYTES)
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        names: list[str] | None = None
        number = 0
        reader = csv.reader(_bounded_lines(text), delimiter=delimiter)
        while True:
            number += 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield Bad("too_long", f"row {number}")
                continue
            if names is None:
                if len(cells) == 1 and delimiter == "," and ";" in cells[0]:
                    delimiter = ";"  # as spreadsheets write it where the comma separates decimals
                    cells = next(csv.reader([cells[0]], delimiter=delimiter))
                    reader = csv.reader(_bounded_lines(text), delimiter=delimiter)
                names = [name.strip() for name in cells]
            elif not any(cells):
                yield Bad("empty", f"row {number}")
            elif len(cells) > len(names):
                yield Bad("broken", f"row {number} ({len(cells)} cells under {len(names)} names)")
            else:
                yield dict(zip(names, cells, strict=False))


def _bounded_lines(text: IO[str]) -> Iterator[str]:
    """Lines, an endless one cut, so that a file without line ends needs no memory."""
    while line := text.readline(MAX_ROW_BYTES):
        yield line


def table_rows(
    path: Path, columns: Sequence[str], on_read: Callable[[int], None], *, stream: bool
) -> Iterator[Row | Bad]:
    """The rows of a Parquet file, or of an Arrow stream, as the `datasets` package keeps them.

    Args:
        path: The file.
        columns: Only those of these that it has; all where it has none of them.
        on_read: Called with the bytes of the file that have been read; of Parquet by the share of its rows.
        stream: It is an Arrow stream.
    """
    import pyarrow
    from pyarrow import ipc, parquet

    try:
        if stream:
            with pyarrow.memory_map(str(path)) as source, ipc.open_stream(source) as reader:
                known = [name for name in columns if name in reader.schema.names] or reader.schema.names
                for batch in reader:
                    on_read(source.tell())
                    for start in range(0, batch.num_rows, _TABLE_ROWS):
                        yield from batch.select(known).slice(start, _TABLE_ROWS).to_pylist()
            return
        with parquet.ParquetFile(path) as file:
            known = [name for name in columns if name in file.schema_arrow.names] or None
            size_bytes, rows_read = path.stat().st_size, 0
            for batch in file.iter_batches(batch_size=_TABLE_ROWS, columns=known):
                rows_read += batch.num_rows
                on_read(size_bytes * rows_read // max(1, file.metadata.num_rows))
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        yield Bad("broken", f"the file cannot be read on ({error})"[:300])
