"""A JSON document of any size, one row at a time: an array of rows, or an object of arrays (one each column).

Not read with ijson 3.6: its C backend takes 0.5 s of processor time for 50 MB instead of 0.7 s, but ends the document
at NaN, at an integer of more than 64 bits and at a byte that is not UTF-8 (here that costs one row), and sets no limit
to a value's size. Its Python backend takes 3.7 s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

MAX_VALUE_CHARS: Final = 64 << 20
_READ_CHARS: Final = 1 << 18
_SPACE: Final = " \t\r\n"


class NotRowsError(Exception):
    """The document is valid as far as it was read, but holds neither an array nor an object of arrays."""


class BrokenJsonError(Exception):
    """From here on the document cannot be understood."""


class Cell(dict[str, Any]):
    """One value of a table that is written column by column: a row with that one column."""


def json_rows(text: IO[str]) -> Iterator[Any]:
    """The rows of a JSON document: elements of an array, or those of an object's arrays.

    What is in an object's array and not an object itself comes as a `Cell`, first all of the first column. Arrays
    of objects inside an object (``{"version": 1, "data": [{…}, …]}``) come as their objects.

    Raises:
        NotRowsError: There are no arrays.
        BrokenJsonError: It is broken from there on.
    """
    scanner = _Scanner(text)
    first = scanner.peek()
    if first == "[":
        yield from _elements(scanner)
    elif first == "{":
        yield from _columns(scanner)
    else:
        scanner.value()
        raise NotRowsError
    if scanner.peek():
        raise BrokenJsonError("something follows the document's end")


def _elements(scanner: _Scanner) -> Iterator[Any]:
    scanner.take("[")
    if scanner.peek() == "]":
        scanner.take("]")
        return
    while True:
        yield scanner.value()
        if scanner.peek() == ",":
            scanner.take(",")
            continue
        scanner.take("]")
        return


def _columns(scanner: _Scanner) -> Iterator[Any]:
    scanner.take("{")
    arrays = 0
    while scanner.peek() != "}":
        key = scanner.value()
        if not isinstance(key, str):
            raise BrokenJsonError("a key is not text")
        scanner.take(":")
        if scanner.peek() == "[":
            arrays += 1
            for element in _elements(scanner):
                yield element if isinstance(element, dict) else Cell({key: element})
        else:
            scanner.value()
        if scanner.peek() == ",":
            scanner.take(",")
        elif scanner.peek() != "}":
            raise BrokenJsonError("a comma is missing")
    scanner.take("}")
    if not arrays:
        raise NotRowsError


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
        """Goes past this character, which must come next."""
        if self.peek() != character:
            raise BrokenJsonError(f"{character} is missing")
        self._at += 1

    def value(self) -> Any:
        """The next value, whole."""
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
                if isinstance(error, RecursionError) or left > MAX_VALUE_CHARS or not self._more(size):
                    raise BrokenJsonError(str(error)) from None
            size *= 2

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        more = self._text.read(size)
        self._ended = not more
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return bool(more)
