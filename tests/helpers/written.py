"""Writes the same texts as files of every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

PLAIN = ("one.jsonl", "one.json", "columns.json", "one.csv", "one.tsv")
PACKED = ("one.jsonl.gz", "one.json.gz", "one.csv.gz")
WITH_PACKAGES = ("one.jsonl.zst", "one.csv.zst", "one.parquet")
ALL = (*PLAIN, *PACKED, *WITH_PACKAGES)


def write_rows(path: Path, texts: Sequence[str], column: str = "text") -> Path:
    """A table with an `id` and a column of text, in the format that the file's name asks for."""
    rows = [{"id": number, column: text} for number, text in enumerate(texts)]
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".parquet"):
        write_parquet(path, rows)
        return path
    if name.endswith(".jsonl"):
        data = "".join(json.dumps(row, ensure_ascii=number % 2 == 0) + "\n" for number, row in enumerate(rows))
    elif name == "columns.json":
        data = json.dumps({"id": [row["id"] for row in rows], column: [row[column] for row in rows]})
    elif name.endswith(".json"):
        data = json.dumps(rows, indent=1)
    else:
        data = _table(rows, "\t" if name.endswith(".tsv") else ",", column)
    path.write_bytes(pack(data.encode("utf-8", "surrogatepass"), path.name))
    return path


def pack(data: bytes, name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(data)
    if name.endswith(".zst"):
        pyarrow = pytest.importorskip("pyarrow", reason=".zst needs the pyarrow package")
        packed: bytes = pyarrow.compress(data, codec="zstd", asbytes=True)
        return packed
    return data


def write_parquet(path: Path, rows: Sequence[dict[str, object]], group: int = 3) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the pyarrow package")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path, row_group_size=group)


def _table(rows: Sequence[dict[str, object]], delimiter: str, column: str) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["id", column], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
