"""The rows of a file in any form, one after the other; bad ones as a `Bad`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from workers.data.reading.columns import VALUE
from workers.data.reading.delimited import MAX_ROW_BYTES
from workers.data.reading.json_layout import JsonLayout
from workers.data.reading.json_stream import BrokenJsonError, BrokenRow, Cell, json_rows
from workers.data.reading.row_counts import Bad

_TABLE_ROWS: Final = 512
# Lines between the rows of Elasticsearch's bulk format, such as Wikipedia's search dumps.
_ACTIONS: Final = ({"index"}, {"create"})


Row = Mapping[str, Any]


def jsonl_rows(stream: IO[bytes]) -> Iterator[Row | Bad]:
    number = 0
    while line := stream.readline(MAX_ROW_BYTES):
        number += 1
        where = f"line {number}"
        if len(line) >= MAX_ROW_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_ROW_BYTES)) and not rest.endswith(b"\n"):
                continue
            yield Bad("too_long", where)
            continue
        if line.strip():  # one without anything is not a row, as in a table
            yield _line_row(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, where)


def _line_row(line: bytes, where: str) -> Row | Bad:
    try:
        return _as_row(json.loads(line.decode("utf-8")), where)
    except UnicodeDecodeError:
        return Bad("invalid_utf8", where)
    except (ValueError, RecursionError):
        return Bad("broken", where)


def json_file_rows(stream: IO[bytes], layout: JsonLayout) -> Iterator[Row | Bad]:
    """The rows of JSON text that is not JSON Lines."""
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        number = 0
        try:
            for number, value in enumerate(json_rows(text, layout), 1):
                broken = isinstance(value, BrokenRow)
                yield Bad("broken", f"row {number} ({value})") if broken else _as_row(value, f"row {number}")
        except BrokenJsonError as error:
            yield Bad("broken", f"from row {number + 1} on ({error})")


def _as_row(value: Any, where: str) -> Row | Bad:
    if isinstance(value, str):
        return {VALUE: value}
    if isinstance(value, dict) and value.keys() in _ACTIONS:
        return Cell(value)
    return value if isinstance(value, dict) else Bad("no_names", where)


def table_rows(
    path: Path, columns: Sequence[str], on_read: Callable[[int], None], *, arrow: bool
) -> Iterator[Row | Bad]:
    """The rows of a Parquet file, or of an Arrow file, as the `datasets` package and pandas keep them.

    Args:
        path: The file.
        columns: Those of these that it has are read; all where it has none of them.
        on_read: Gets the bytes of the file that have been read; of Parquet by the share of its rows.
        arrow: It is an Arrow file or stream.
    """
    import pyarrow
    from pyarrow import parquet

    try:
        if arrow:
            with pyarrow.memory_map(str(path)) as source:
                for batch in _arrow_batches(source):
                    on_read(source.tell())
                    known = [name for name in columns if name in batch.schema.names] or batch.schema.names
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


def _arrow_batches(source: Any) -> Iterator[Any]:
    from pyarrow import ipc

    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    if not is_file:
        with ipc.open_stream(source) as reader:
            yield from reader
        return
    file = ipc.open_file(source)
    for number in range(file.num_record_batches):
        yield file.get_batch(number)
