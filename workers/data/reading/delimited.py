"""Tables of delimited text (CSV, TSV and their relatives): their dialect, found from the beginning, and their rows."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final, Literal

from workers.data.reading.columns import NAMES, kind_of, word_count
from workers.data.reading.row_counts import Bad

MAX_ROW_BYTES: Final = 64 << 20
_DELIMITERS: Final = (",", "\t", ";", "|", "^", "~", "\x01")
# Stands for no delimiter: a table of one column.
_NONE: Final = "\x1f"
_DELIMITER_NAMES: Final = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?\s*$', re.IGNORECASE)
_SAMPLED: Final = 200
_LONG_NAME: Final = 60
_MOST_ABOVE: Final = 12
_SURE_ROWS: Final = 3
_NAME: Final = re.compile(r"\s*[^\W\d][\w .-]{0,39}")
_LEARNED_ROWS: Final = 50
# Lines of a record after which it is looked at for the first time: three rows in a cell are no accident.
_LOOK_AFTER: Final = 4
_NUMBER: Final = re.compile(r"[-+]?\d[\d., ]*(e[-+]?\d+)?\s*%?", re.IGNORECASE)
_USUAL_NAMES: Final = frozenset(
    (*NAMES, "id", "label", "name", "url", "date", "index", "category", "tweet", "sentiment")
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The way a table of delimited text is written.

    Attributes:
        delimiter: Between two cells.
        escape: Before a quote within quotes; empty: another quote.
        has_header: The first row names the columns; without one they are numbered from 1.
        has_separator_line: Excel's ``sep=;`` comes first.
        is_quoted: Quotes around a cell do not belong to it.
    """

    delimiter: str = ","
    escape: str = ""
    has_header: bool = True
    has_separator_line: bool = False
    is_quoted: bool = True

    @property
    def is_one_column(self) -> bool:
        return self.delimiter == _NONE

    @property
    def text(self) -> str:
        if self.is_one_column:
            return "CSV with one column"
        name = _DELIMITER_NAMES.get(self.delimiter, f"“{self.delimiter}”")
        return "CSV" if self.delimiter == "," else "TSV" if self.delimiter == "\t" else f"CSV with {name}"


def find_dialect(head: str, *, is_whole: bool, usual: str) -> Dialect:
    """The dialect of a table by its beginning `head`.

    `usual` is the delimiter that the file's name stands for, which wins where others do as well.
    """
    first, _, rest = head.partition("\n")
    stated = _SEPARATOR_LINE.match(first)
    if stated is not None:
        return Dialect(stated[1], has_header=has_header(sampled_rows(rest, Dialect(stated[1]), is_whole)[0]),
                       has_separator_line=True)  # fmt: skip
    best, best_fit, rows = Dialect(_NONE), (0.0, 0), sampled_rows(head, Dialect(_NONE), is_whole)[0]
    for delimiter in sorted(_DELIMITERS, key=lambda it: it != usual):
        for escape in ("", "\\") if '\\"' in head else ("",):
            tried = Dialect(delimiter, escape, is_quoted=delimiter != "\t" or not _has_bare_quotes(head, is_whole))
            found, well_formed = sampled_rows(head, tried, is_whole)
            share = _share(found, well_formed)
            fit = (min(share, 0.9), len(found[0]) if found else 0)
            if fit[1] >= 2 and share > 0.5 and fit > best_fit:
                best, best_fit, rows = tried, fit, found
    if best.delimiter == _NONE:
        names = sampled_rows(head, Dialect(usual), is_whole)[0][:1]
        if names and len(names[0]) > 1 and all(map(_NAME.fullmatch, names[0])):
            best, rows = Dialect(usual), names  # its rows are broken, which the reader says
    return replace(best, has_header=has_header(rows))


def header_line(head: str, *, is_whole: bool, usual: str) -> int:
    """The line with the names, counted from 1, where lines about the table stand above it; else 1."""
    lines = head.split("\n")
    for number in range(1, min(_MOST_ABOVE, len(lines) - _SURE_ROWS)):
        rest = "\n".join(lines[number:])
        rows, well_formed = sampled_rows(rest, Dialect(usual), is_whole)
        if (
            lines[number].strip(f" \r{usual}")
            and len(rows) > _SURE_ROWS
            and len(rows[0]) > 1
            and _share(rows, well_formed) > 0.9
            and has_header(rows)
        ):
            return number + 1
    return 1


def _has_bare_quotes(head: str, is_whole: bool) -> bool:
    """Whether quotes in a table with tabs are only characters: every line is a row, and most quotes enclose no cell."""
    lines = [line.rstrip("\r") for line in head.split("\n")[: None if is_whole else -1] if line.strip()][:_SAMPLED]
    cells = [line.split("\t") for line in lines]
    width = len(cells[0]) if cells else 0
    opened = sum(cell.startswith('"') for row in cells for cell in row)
    enclosed = sum(len(cell) > 1 and cell.startswith('"') and cell.endswith('"') for row in cells for cell in row)
    return 2 * enclosed < opened and all(len(row) == width for row in cells)


def sampled_rows(head: str, dialect: Dialect, is_whole: bool) -> tuple[list[list[str]], int]:
    """The first rows of a table as cells, and the number of well-formed ones."""
    if not is_whole:
        head = head[: head.rfind("\n") + 1] or head
    rows: list[list[str]] = []
    well_formed = 0
    reader = _Records(io.StringIO(head, newline=""), dialect)
    for cells in reader:
        if isinstance(cells, Bad):
            if reader.ended and not is_whole:
                break  # the beginning ends within it
            rows.append([])
        elif any(cells):
            rows.append(cells)
            well_formed += not reader.mended
        if len(rows) >= _SAMPLED:
            break
    return rows, well_formed


def _share(rows: Sequence[Sequence[str]], well_formed: int) -> float:
    """The share of rows that are well formed and have as many cells as the first."""
    if not rows or not rows[0]:
        return 0.0
    fitting = sum(len(cells) == len(rows[0]) for cells in rows)
    return min(fitting, well_formed) / len(rows)


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    if not rows:
        return True
    names, below = rows[0], [cells for cells in rows[1:] if len(cells) == len(rows[0])]
    if any(name.strip().lower() in _USUAL_NAMES for name in names):
        return True
    if not any(name.strip() for name in names) or any(len(name) > 4 * _LONG_NAME for name in names):
        return False
    for number, name in enumerate(names):
        values = [cells[number] for cells in below if cells[number].strip()]
        typed = sum(_cell_type(value) != "" for value in values)
        if values and typed >= 0.8 * len(values):
            return _cell_type(name) == "" or _is_numbered(name, values)
    columns = [[cells[number] for cells in below] for number in range(len(names))]
    if any(_cell_type(name) and not _is_numbered(name, values) for name, values in zip(names, columns, strict=True)):
        return False
    repeated = any(
        name and sum(cells[number] == name for cells in below) > 1 for number, name in enumerate(names)
    )  # a label of a row
    mean = sum(word_count(cell) for cells in below for cell in cells) / max(1, len(below))
    long = sum(map(word_count, names)) > (6 if len(names) > 1 else 2) and sum(map(word_count, names)) * 3 > mean
    return not repeated and not long


def _is_numbered(name: str, values: Sequence[str]) -> bool:
    """Whether a cell above `values` is a name such as ``v1``, and not one of them."""
    alike = re.sub(r"\d+$", "", name)
    return alike.isidentifier() and alike != name and not any(re.sub(r"\d+$", "", value) == alike for value in values)


def _cell_type(value: str) -> str:
    """ "number" or "opaque" (an address, a date, an id); empty for words."""
    value = value.strip()
    if _NUMBER.fullmatch(value):
        return "number"
    return "opaque" if value and kind_of(value) == "opaque" else ""


def delimited_rows(stream: IO[bytes], dialect: Dialect) -> Iterator[dict[str, Any] | Bad]:
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        if dialect.has_separator_line:
            text.readline(MAX_ROW_BYTES)
        names: list[str] | None = None
        reader = _Records(text, dialect, first_line=2 if dialect.has_separator_line else 1)
        for cells in reader:
            if isinstance(cells, Bad):
                yield cells
            elif names is None and dialect.has_header:
                names = column_names(cells)
                reader.width = len(names)
            elif not cells:
                continue  # a line without anything is not a row
            elif not any(cells):
                yield Bad("empty", f"line {reader.line}")
            else:
                if names is None:
                    names = [str(number) for number in range(1, len(cells) + 1)]
                    reader.width = len(names)
                if len(cells) > len(names):
                    yield Bad("broken", f"line {reader.line} ({len(cells)} cells under {len(names)} names)")
                else:
                    yield dict(zip(names, cells, strict=False))


def column_names(cells: Sequence[str]) -> list[str]:
    """The names in a header; a missing one is its number, a repeated one gets a number."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell.strip() or str(number)
        same = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({same + 1})" if name in names else name)
    return names


class _Records:
    """The records of a table, each a list of cells, or a `Bad`.

    Where a quote opens a cell that does not end, or that holds the rows behind it, the record is bad and reading
    continues with the next line, so that one stray quote costs one row.

    Attributes:
        line: The newest record's first line, counted from 1.
        mended: The newest record's quotes do not follow the rules; it was read without them spanning lines.
        ended: The text has been read to its end.
        width: Expected cells of a record; 0: not known yet.
    """

    def __init__(self, text: IO[str], dialect: Dialect, first_line: int = 1) -> None:
        csv.field_size_limit(MAX_ROW_BYTES)
        self.line, self.mended, self.ended, self.width = first_line, False, False, 0
        self._text = text
        self._dialect = dialect
        self._again: deque[str] = deque()
        self._record: list[str] = []
        self._next_look = _LOOK_AFTER
        self._records = self._spanning = 0
        self._types: list[Counter[str]] = []
        self._typed: dict[int, str] = {}
        self._last_number: float | None = -math.inf

    def __iter__(self) -> Iterator[list[str] | Bad]:
        reader = self._reader(self._lines())
        while True:
            self.line += len(self._record)
            self._record, self._next_look, self.mended = [], _LOOK_AFTER, False
            cells: list[str] | Bad
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = self._mended(str(error))
                reader = self._reader(self._lines())
            if len(self._record) >= _LOOK_AFTER and self._holds_rows(ended=True):
                cells = self._give_up()
                reader = self._reader(self._lines())
            if not isinstance(cells, Bad):
                self._records += 1
                self._spanning += len(self._record) > 1
                if self._last_number is not None or self._records <= _LEARNED_ROWS:
                    self._learn(cells)
            yield cells

    def _reader(self, lines: Iterator[str], strict: bool = True) -> Iterator[list[str]]:
        escape = self._dialect.escape
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self._dialect.is_quoted else csv.QUOTE_NONE
        return csv.reader(
            lines, delimiter=self._dialect.delimiter, strict=strict, escapechar=escape or None,
            doublequote=not escape, quoting=quoting,
        )  # fmt: skip

    def _lines(self) -> Iterator[str]:
        """Lines, an endless one cut, until the record should be given up."""
        while True:
            if len(self._record) == self._next_look:
                self._next_look *= 2
                if self._holds_rows():
                    return
            line = self._again.popleft() if self._again else self._text.readline(MAX_ROW_BYTES)
            if not line:
                self.ended = True
                return
            self._record.append(line)
            yield line

    def _mended(self, problem: str) -> list[str] | Bad:
        """A record whose quotes do not follow the rules, as its first line alone."""
        if "limit" in problem:
            self._back()
            return Bad("too_long", f"line {self.line}")
        if len(self._record) > 1 or "end of data" in problem:
            return self._give_up()
        self.mended = True
        return next(self._reader(iter(self._record), strict=False), [])

    def _give_up(self) -> Bad:
        self._back()
        return Bad("broken", f"line {self.line} (a quote that is not closed)")

    def _back(self) -> None:
        """Return all lines of the record but the first."""
        self._again.extendleft(reversed(self._record[1:]))
        del self._record[1:]

    def _learn(self, cells: Sequence[str]) -> None:
        """Learn the cells' types from good records."""
        if self._last_number is not None and self._records > 1:
            number = _integer(cells[0]) if cells else None
            self._last_number = number if number is not None and number > self._last_number else None
        if self._records == 1 or self._records > _LEARNED_ROWS:
            return
        self._types += [Counter() for _ in range(len(cells) - len(self._types))]
        for types, cell in zip(self._types, cells, strict=False):
            types[_cell_type(cell) if cell else "empty"] += 1
        if self._records == _LEARNED_ROWS:
            self._usual_types()

    def _holds_rows(self, *, ended: bool = False) -> bool:
        """Whether the lines behind the first look like rows of their own; `ended`: the last one ends the record."""
        width = self.width or max(1, len(self._types))
        if width == 1 or self._dialect.delimiter == _NONE:
            usual = self._records >= 10 and self._spanning * 20 < self._records
            return usual and len(self._record) > 20
        typed = self._typed if self._records > _LEARNED_ROWS else self._usual_types()
        # The end of a text and the number behind it are like a row, too; only a row begins with what rows begin with.
        last = -1 if ended and 0 not in typed else None
        lines = [line for line in self._record[1:last] if line.strip()]
        if not lines or not self._is_row(lines[0], width, typed):
            return False
        fitting = sum(self._is_row(line, width, typed) for line in lines)
        enough = _LOOK_AFTER - 1 if typed else 5 if width > 2 else 20
        return fitting >= max(enough, 0.8 * len(lines))

    def _usual_types(self) -> dict[int, str]:
        """Columns whose cells are nearly always numbers, or addresses, dates and ids."""
        usual = ((number, *types.most_common(1)[0], types.total()) for number, types in enumerate(self._types) if types)
        self._typed = {
            number: kind
            for number, kind, count, total in usual
            if kind in ("number", "opaque") and total >= _SURE_ROWS and count >= 0.9 * total
        }
        return self._typed

    def _is_row(self, line: str, width: int, typed: dict[int, str]) -> bool:
        if line.count(self._dialect.delimiter) < width - 1:
            return False
        try:
            cells = next(self._reader(iter((line,)), strict=False), [])
        except csv.Error:
            return False
        if len(cells) != width or any(_cell_type(cells[number]) != kind for number, kind in typed.items()):
            return False
        # Where rows are numbered, those in a cell have later numbers.
        number = _integer(cells[0])
        return self._last_number is None or self._records < 2 or (number is not None and number > self._last_number)


def _integer(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() and len(cell) < 20 else None
