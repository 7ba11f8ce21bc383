"""Numbers as people write them, in any country: ``1e-4``, ``0,001``, ``1_000``, ``1 000``, ``2k``, ``4 GB``.

A text that has two meanings has none: ``1,000`` is one in Berlin and a thousand in Boston.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

_PART: Final = re.compile(
    r"(?P<number>[-+]?(?:\d(?:[\d.,_'’\u00a0\u2009\u202f]| (?=\d))*|[.,]\d+)(?:[eE][-+]?\d+)?)"
    r"\s*(?P<unit>%|[^\W\d_]*)\s*"
)
_GROUPED: Final = re.compile(r"[-+]?[1-9]\d{0,2}(?P<mark>[.,_'’ \u00a0\u2009\u202f])\d{3}(?:(?P=mark)\d{3})*")
_TIMES: Final[Mapping[str, int]] = {"k": 1000, "K": 1000, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}
_SECONDS: Final[Mapping[str, str]] = {
    "ms": "0.001",
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "1"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "60"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "3600"),
    **dict.fromkeys(("d", "day", "days"), "86400"),
}
_LETTERS: Final = "kmgt"
# Beyond that a number is taken as infinite: Python would take minutes for ``1e999999999`` as a whole one.
_MOST_DIGITS: Final = 300


class NumberError(ValueError):
    """A text that is not a number, or may be two; its text is the end of a sentence that begins with the text itself.

    Args:
        what: "is not a number".
        instead: A text to write instead; empty where that is not known.
    """

    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(what)
        self.instead = instead


def read_number(text: str, unit: str = "", *, whole: bool = False) -> int | float:
    """Read a number in `unit`.

    Args:
        text: A unit of the same kind may follow: ``90 min`` where hours are meant.
        unit: As in `FieldSpec.unit`.
        whole: Only whole numbers make sense, so that a point too may stand between thousands.

    Raises:
        NumberError: It is not a number, or may be two.
    """
    text = text.strip()
    if re.fullmatch(r"[-+]?(?:nan|inf(?:inity)?)", text, re.IGNORECASE):
        return float(text)
    if re.fullmatch(r"[-+]?\d{1,300}", text):
        return int(text)
    parts, end, total = 0, 0, Decimal(0)
    while (found := _PART.match(text, end)) is not None:
        number, factor = _decimal(found["number"], whole=whole and not found["unit"]), _factor(found["unit"], unit)
        if number.adjusted() > _MOST_DIGITS:
            return math.inf
        total += number * factor
        parts, end = parts + 1, found.end()
        if not found["unit"]:
            break
    if not parts or end < len(text) or (parts > 1 and unit not in ("s", "h")):
        raise NumberError("is not a number")
    return int(total) if whole and total == int(total) else float(total)


def _decimal(text: str, *, whole: bool) -> Decimal:
    mantissa, e, exponent = text.lower().partition("e")
    grouped = _GROUPED.fullmatch(mantissa)
    marks = [mark for mark in mantissa if mark in ".,"]
    if grouped and not e and len(marks) == 1 and (whole or marks[0] == ","):
        plain, small = mantissa.replace(marks[0], ""), mantissa.replace(",", ".").rstrip("0").rstrip(".")
        raise NumberError(f"can be read as {small} and as {plain}", f"Write {plain} or {small}.")
    if grouped and not (len(marks) == 1 and marks[0] == "."):
        mantissa = mantissa.replace(grouped["mark"], "")
    elif marks:  # the last mark is the decimal one; those before it stand between thousands
        head, point, tail = mantissa.rpartition(marks[-1])
        groups = _GROUPED.fullmatch(head)
        head = head.replace(groups["mark"], "") if groups and groups["mark"] != point else head
        mantissa = f"{head}.{tail}"
    try:
        if re.search(r"\d_\d", mantissa):
            mantissa = re.sub(r"(?<=\d)_(?=\d)", "", mantissa)
        return Decimal(mantissa + e + exponent)
    except InvalidOperation:
        raise NumberError("is not a number") from None


def _factor(given: str, unit: str) -> Decimal:
    """The value of the unit behind a number, in `unit`."""
    if not given or given == unit:
        return Decimal(1)
    time = given if given == "M" else given.lower()
    if unit in ("s", "h") and time in _SECONDS:
        return Decimal(_SECONDS[time]) / (3600 if unit == "h" else 1)
    size, wanted = _bytes(given), _bytes(unit)
    if size and wanted:
        return Decimal(size) / wanted
    if given in _TIMES and unit not in ("s", "h", "%"):
        return Decimal(_TIMES[given])
    if unit.isalpha() and len(unit) > 2 and given.lower() in (unit, unit.removesuffix("s")):
        return Decimal(1)
    of = f"{unit} are meant here" if unit else "this setting has no unit"
    raise NumberError(f"has the unit {given}, but {of}")


def _bytes(unit: str) -> int:
    """The bytes of a unit: ``GB`` are 10⁹, ``GiB`` and the ``G`` of programs 2³⁰; 0 for any other unit."""
    found = re.fullmatch(rf"([{_LETTERS}])(i?)(b?)", unit, re.IGNORECASE)
    if found is None or (found[2] and not found[3]):
        return 0
    power = _LETTERS.index(found[1].lower()) + 1
    return int((1000 if found[3] and not found[2] else 1024) ** power)
