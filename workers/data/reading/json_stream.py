"""JSON text of any size, one row at a time, laid out as `json_layout` found it.

Not read with ijson 3.6: its C backend takes 0.5 s of processor time for 50 MB instead of 0.7 s, but ends the document
at NaN, at an integer of more than 64 bits and at a byte that is not UTF-8 (here that costs one row), and sets no limit
to a value's size. Its Python backend takes 3.7 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from workers.data.reading.json_layout import JsonLayout

MAX_VALUE_CHARS: Final = 64 << 20
_READ_CHARS: Final = 1 << 18
_SPACE: Final = " \t\r\n"
_NEXT_ROW: Final = re.compile(r"[\n,]\s*\{")


class BrokenJsonError(Exception):
    pass


class BrokenRow(str):
    """A row that could not be understood: why. The rows behind it were found again."""


class Cell(dict[str, Any]):
    """One value of a table that is written column by column, or an object beside the rows: it may lack the column."""


def json_rows(text: IO[str], layout: JsonLayout) -> Iterator[Any]:
    """The rows of JSON text; of a table that is written column by column, a `Cell` for each value."""
    scanner = _Scanner(text)
    if layout.kind == "values":
        yield from _values(scanner)
        return
    yield from _below(scanner, layout, layout.path)
    if scanner.peek():
        raise BrokenJsonError("something follows the document's end")


def _below(scanner: _Scanner, layout: JsonLayout, path: tuple[str, ...]) -> Iterator[Any]:
    if not path:
        yield from _rows_here(scanner, layout)
        return
    for key in _keys(scanner):
        if key == path[0]:
            yield from _below(scanner, layout, path[1:])
        else:
            _skip(scanner)


def _rows_here(scanner: _Scanner, layout: JsonLayout) -> Iterator[Any]:
    if layout.kind == "row":
        yield scanner.value()
    elif layout.kind == "array":
        yield from _elements(scanner, layout.path[-1] if layout.path else "")
    elif layout.kind == "index":
        for _ in _keys(scanner):
            yield scanner.value()
    elif layout.kind == "split":
        yield from _split(scanner)
    else:
        yield from _columns(scanner)


def _values(scanner: _Scanner) -> Iterator[Any]:
    """One value after the other, with or without commas; the elements of an array among them."""
    while following := scanner.peek():
        if following == ",":
            scanner.take(",")
            continue
        try:
            value = scanner.value()
        except BrokenJsonError as error:
            if not scanner.find_row():
                raise
            yield BrokenRow(error)
            continue
        yield from value if isinstance(value, list) and any(isinstance(row, dict) for row in value) else [value]


def _elements(scanner: _Scanner, column: str = "") -> Iterator[Any]:
    """The elements of an array; after a broken one, from the next that begins like a row."""
    scanner.take("[")
    while True:
        try:
            if scanner.peek() == "]":  # of an empty array, or behind a last comma
                scanner.take("]")
                return
            value = scanner.value()
            yield value if isinstance(value, dict) or not column else Cell({column: value})
            if scanner.peek() != ",":
                scanner.take("]")
                return
            scanner.take(",")
        except BrokenJsonError as error:
            if not scanner.find_row():
                raise
            yield BrokenRow(error)


def _keys(scanner: _Scanner) -> Iterator[str]:
    """An object's keys; the value of each is taken before the next is asked for."""
    scanner.take("{")
    while scanner.peek() != "}":
        key = scanner.value()
        if not isinstance(key, str):
            raise BrokenJsonError("a key is not text")
        scanner.take(":")
        yield key
        if scanner.peek() == ",":
            scanner.take(",")
        elif scanner.peek() != "}":
            raise BrokenJsonError("a comma is missing")
    scanner.take("}")


def _columns(scanner: _Scanner) -> Iterator[Any]:
    """An object of columns, each an array or an object with a value for each row."""
    for key in _keys(scanner):
        following = scanner.peek()
        if following == "[":
            yield from (Cell(value) if isinstance(value, dict) else value for value in _elements(scanner, key))
        elif following == "{":
            for _ in _keys(scanner):
                yield Cell({key: scanner.value()})
        else:
            scanner.value()


def _split(scanner: _Scanner) -> Iterator[Any]:
    """The rows of pandas' "split": an array of names, and one of the rows' cells."""
    names: list[str] = []
    for key in _keys(scanner):
        if key == "columns":
            names = [str(name) for name in scanner.value()]
        elif key == "data":
            for cells in _elements(scanner):
                yield dict(zip(names, cells, strict=False)) if isinstance(cells, list) else cells
        else:
            _skip(scanner)


def _skip(scanner: _Scanner) -> None:
    """Skip a value; an array one element at a time."""
    if scanner.peek() == "[":
        for _ in _elements(scanner):
            continue
    else:
        scanner.value()


class _Scanner:
    """A position in a text that is read as it is needed."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._decode = json.JSONDecoder().raw_decode
        self._buffer = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in _SPACE:
                    return self._buffer[self._at]
                self._at += 1
            if not self._more(_READ_CHARS):
                return ""

    def take(self, character: str) -> None:
        """Skip this character, which must come next."""
        if self.peek() != character:
            raise BrokenJsonError(f"{character} is missing")
        self._at += 1

    def value(self) -> Any:
        self.peek()
        size = _READ_CHARS
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
                if end < len(self._buffer) or not self._more(size):  # a number may go on in what was not read yet
                    self._at = end
                    return value
            except (ValueError, RecursionError) as error:
                left = len(self._buffer) - self._at
                if self._is_final(error) or left > MAX_VALUE_CHARS or not self._more(size):
                    raise BrokenJsonError(str(error)) from None
            size *= 2

    def find_row(self) -> bool:
        """Skip to the next object that begins a line or follows a comma; False for none."""
        self._at += 1
        while True:
            found = _NEXT_ROW.search(self._buffer, max(0, self._at - 1))
            if found is not None:
                self._at = found.end() - 1
                return True
            self._at = max(self._at, len(self._buffer) - 1)
            if not self._more(_READ_CHARS):
                return False

    def _is_final(self, error: ValueError | RecursionError) -> bool:
        """Whether reading on cannot help: it fails far from the end of the buffer, and not in a long string."""
        if not isinstance(error, json.JSONDecodeError):
            return True
        return error.pos < len(self._buffer) - _READ_CHARS and not error.msg.startswith("Unterminated string")

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        more = self._text.read(size)
        self._ended = not more
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return bool(more)
