"""Layout of a data file, found from its beginning: its name says little about its content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.data.formats import BEGINNING_BYTES, PAGES, FileFormat, Form, Packing, check_table, check_text, find_markup
from core.errors import DatasetError
from core.files.lfs_pointer import check_lfs_pointer
from workers.data.reading.columns import NAMES, WHOLE
from workers.data.reading.delimited import Dialect, column_names, find_dialect, header_line, sampled_rows
from workers.data.reading.json_layout import JsonLayout, find_json_layout
from workers.data.reading.packed import is_damage, open_packed

_HEAD_BYTES: Final = 1 << 20
JSON: Final = "JSON without rows"
BOM: Final = b"\xef\xbb\xbf"
# Of how rows are read: another one gives other tokens for the same file.
_VERSION: Final = 2
_USUAL_DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
_SURE_ROWS: Final = 5
# The header of a table whose rows are single cells: "id,text", 'id';'text'.
_NAMES_IN_A_CELL: Final = re.compile(r"""['"]?[^\W\d]\w*['"]?([,;\t|]['"]?[^\W\d]\w*['"]?)+""")
_JSON_ROWS: Final = re.compile(r'\s*(\[\s*)?\{\s*"')


@dataclass(frozen=True, slots=True)
class Layout:
    """The way a file is read.

    Attributes:
        form: The rows' form; "text" is one document without rows.
        has_bom: The text begins with a byte order mark, which is left out.
        remark: A sentence on content that is not read so; empty for none.
        markup: Content besides words; empty for none that is known.
    """

    form: Form = "text"
    json: JsonLayout | None = None
    dialect: Dialect | None = None
    has_bom: bool = False
    remark: str = ""
    markup: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """Facts that the tokens depend on beside form and column; empty where text is read as it always was."""
        if self.form == "text":
            return ("bom",) if self.has_bom else ()
        dialect, json = self.dialect, self.json
        details = (json.kind, *json.path) if json is not None else ()
        if dialect is not None:
            details = (dialect.delimiter, dialect.escape, str(dialect.has_header), str(dialect.has_separator_line))
            details += () if dialect.is_quoted else ("bare quotes",)
        return (_VERSION, *details)

    @property
    def text(self) -> str:
        if self.json is not None:
            return self.json.text
        if self.dialect is not None:
            return self.dialect.text + ("" if self.dialect.has_header else " without a header")
        return {"parquet": "Parquet", "arrow": "Arrow", "jsonl": "JSON Lines"}.get(self.form, "plain text")


def find_layout(path: Path, file_format: FileFormat, wanted: str = "") -> Layout:
    """A file's layout; raises `DatasetError` where it is not text, though it should be.

    `wanted` is the text column that a person named; `WHOLE`: the file is text.
    """
    form, packing = file_format.form, file_format.packing
    if not file_format.is_readable_text:
        check_lfs_pointer(path)
    if form in ("parquet", "arrow"):
        if data := _beginning(path, "", BEGINNING_BYTES)[0]:
            check_table(path.name, form, data)
        return Layout(form)
    may_hold_rows = wanted != WHOLE and (file_format.has_rows or file_format.is_open)
    data, is_whole = _beginning(path, packing, _HEAD_BYTES if may_hold_rows else BEGINNING_BYTES)
    head = data.removeprefix(BOM).decode("utf-8", "surrogateescape")
    as_text = Layout("text", has_bom=data.startswith(BOM), markup=find_markup(head[:BEGINNING_BYTES], path.name))
    if not may_hold_rows:
        return as_text
    check_text(path.name, data, is_beginning=True)
    if file_format.has_rows and as_text.markup in PAGES:
        raise DatasetError(
            f"{path.name} holds {as_text.markup}, not rows. Servers answer so where there is an error or a login.",
            "Download the data again.",
            title="The file is a page in place of data",
        )
    if form in ("json", "jsonl"):
        found = find_json_layout(head, is_whole=is_whole, lines_expected=form == "jsonl")
        if found is None:
            return replace(as_text, markup=JSON)
        left_out = ", ".join(found.left_out)
        return _json(found, f"{path.name} also holds {left_out}, which is not read." if left_out else "")
    if form in ("csv", "tsv"):
        return _in_table(path, head, is_whole, form)
    return _in_text(path, head, is_whole, wanted, as_text)


def _beginning(path: Path, packing: Packing, size: int) -> tuple[bytes, bool]:
    """The first bytes of a file, unpacked, and whether that is all of it; fewer where it is damaged."""
    parts: list[bytes] = []

    def blocks() -> Iterator[bytes]:
        with open_packed(path, packing) as (stream, _):
            left = size + 1
            while left > 0 and (block := stream.read(min(left, 1 << 16))):
                left -= len(block)
                yield block

    try:
        for block in blocks():
            parts.append(block)
    except Exception as error:
        if not is_damage(error):  # then it is counted as bad when it is read
            raise
    data = b"".join(parts)
    return data[:size], len(data) <= size


def _json(found: JsonLayout, remark: str) -> Layout:
    return Layout("jsonl", remark=remark) if found.kind == "lines" else Layout("json", json=found, remark=remark)


def _in_table(path: Path, head: str, is_whole: bool, form: Form) -> Layout:
    """The layout of a table, or of JSON that was named like one."""
    if head.lstrip()[:1] in ("{", "["):
        found = find_json_layout(head, is_whole=is_whole, lines_expected=True, is_sure=False)
        if found is not None:
            return _json(found, f"{path.name} is not a table: it holds {found.text}.")
    usual = _USUAL_DELIMITERS[form]
    dialect = find_dialect(head, is_whole=is_whole, usual=usual)
    first = next(iter(sampled_rows(head, dialect, is_whole)[0]), [])
    is_odd = dialect.is_one_column or 2 * sum(not cell.strip() for cell in first) > len(first)
    if is_odd and (line := header_line(head, is_whole=is_whole, usual=usual)) > 1:
        raise DatasetError(
            f"{path.name} does not begin with its table: the columns' names stand in line {line}.",
            "Remove the lines above them.",
            title="The table has lines above it",
        )
    if dialect.is_one_column and _NAMES_IN_A_CELL.fullmatch("".join(first[:1])):
        raise DatasetError(
            f"Each line of {path.name} is one cell: its header is “{first[0]}”.",
            'Save the table again, with double quotes (") around single cells alone.',
            title="The table's columns cannot be told apart",
        )
    return Layout("tsv" if dialect.delimiter == "\t" else "csv", dialect=dialect)


def _in_text(path: Path, head: str, is_whole: bool, wanted: str, as_text: Layout) -> Layout:
    """Text, unless it is JSON with rows; a table only where a person names one of its columns."""
    if _JSON_ROWS.match(head):
        found = find_json_layout(head, is_whole=is_whole, is_sure=False)
        if found is not None and found.kind in ("lines", "values", "array"):
            return _json(found, f"{path.name} holds {found.text}, so its rows are read.")
    dialect = find_dialect(head, is_whole=is_whole, usual="\t")
    rows, _ = sampled_rows(head, dialect, is_whole)
    if len(rows) <= _SURE_ROWS or len(rows[0]) < 2 or any(len(cells) != len(rows[0]) for cells in rows):
        return as_text
    if not any(cells[0] for cells in rows):
        return as_text  # paragraphs that begin with a tab
    names = column_names(rows[0]) if dialect.has_header else [str(number + 1) for number in range(len(rows[0]))]
    known = {name.lower() for name in names} & {*NAMES, "id", "label"}
    if not known and dialect.delimiter != "\t":
        return as_text  # commas stand in sentences, too
    if wanted in names:
        return Layout("tsv" if dialect.delimiter == "\t" else "csv", dialect=dialect)
    remark = (
        f"{path.name} looks like a table ({dialect.text}: {', '.join(names)}) and is read as plain text. "
        "Name its text column to read that alone."
    )
    return replace(as_text, remark=remark, markup="")
