"""A price file: its price column, its unusable rows, its gaps."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Final

from rankdeck.recipe import ConfigError

PRICES: Final = "The price file cannot be used"
SUFFIXES: Final = (".csv", ".tsv", ".txt")
PRICE_NAMES: Final = ("adj close", "close", "closing price", "price", "last", "value")
TIME_NAMES: Final = ("date", "datetime", "time", "timestamp", "open time", "day")
_DELIMITERS: Final = ",;\t|"
_THOUSANDS: Final = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"\d+,\d+")
_COMPACT_DATE: Final = re.compile(r"(19|20)\d{6}")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class PriceFile:
    """The usable prices of a file, oldest first.

    Attributes:
        prices: All above 0.
        stretches: Runs without a gap: first and one past the last, in order.
        column: The prices' column, by name or number.
        rows: Rows with anything in them, the header left out.
        bad_rows: Rows left out: no price, a price that is not above 0, the same time as another.
        examples: Texts about the first bad ones.
    """

    name: str
    prices: tuple[float, ...]
    stretches: tuple[tuple[int, int], ...]
    column: str
    rows: int
    bad_rows: int
    examples: tuple[str, ...] = ()


@dataclass(slots=True)
class _Row:
    """A row of the table; one whose price is None cannot be used."""

    line: int
    time: float | None
    price: float | None


def read_prices(path: Path, column: str = "", max_gap: float = 10.0) -> PriceFile:
    """Read a table of prices in text, with or without a header, perhaps packed with gzip; raise `ConfigError`.

    Args:
        path: The file.
        column: The prices' column: its name, or its number from 1. Empty: guessed.
        max_gap: Usual intervals between two rows, or bad rows in succession, above which a new stretch begins;
            0: never.
    """
    table = _table(path)
    header, rows = _without_header(table)
    names = header or [str(number + 1) for number in range(max(len(row) for _, row in rows))]
    time_at = _time_column(names, rows)
    price_at = _price_column(path.name, names, rows, time_at, column)
    found, examples = [], []
    for line, row in rows:
        text = row[price_at].strip() if price_at < len(row) else ""
        price = number_in(text)
        usable = price is not None and math.isfinite(price) and price > 0
        if not usable:
            examples.append(f"line {line} has the price {text!r}")
        time = moment_in(row[time_at]) if time_at is not None and time_at < len(row) else None
        found.append(_Row(line, time, price if usable else None))
    if time_at is not None:
        found = _in_order(found)
        examples += [f"line {line} has the same time as another" for line in _leave_out_repeated_times(found)]
    prices, stretches = _stretches(found, max_gap)
    if len(prices) < 2:
        first = f" The first: {examples[0]}." if examples else ""
        raise ConfigError(
            "price_column",
            f"{path.name} holds {len(prices)} usable prices in its column {names[price_at]!r}.{first}",
            "Choose a file of prices, or another price column.",
            option="--set price_column=NAME",
            title=PRICES,
        )
    bad = len(rows) - len(prices)
    return PriceFile(path.name, prices, stretches, names[price_at], len(rows), bad, tuple(examples[:_SHOWN]))


def number_in(text: str) -> float | None:
    """A number as people write it: 1234.5, 1,234.5, 12,5, $3.2; None for none."""
    text = text.strip().strip("$€£").strip()
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def moment_in(text: str) -> float | None:
    """Seconds since 1970 of a time as people write it; None for none. Without a zone, all in the same one."""
    text = text.strip()
    number = None if _COMPACT_DATE.fullmatch(text) else number_in(text)
    if number is not None:
        return number / 1000 if abs(number) > 1e11 else number  # milliseconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = datetime.strptime(text, "%m/%d/%Y")
        except ValueError:
            return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _table(path: Path) -> list[tuple[int, list[str]]]:
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(SUFFIXES):
        raise _unusable(
            f"{path.name} is not a table of prices in text.", f"Name a file that ends with {', '.join(SUFFIXES)}."
        )
    try:
        data = gzip.decompress(path.read_bytes()) if path.name.lower().endswith(".gz") else path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _unusable(f"{path.name} cannot be read as text ({error}).", "Save it as UTF-8.") from error
    first = text.lstrip().partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise _unusable(f"{path.name} is not a table: {error}.", "Save it as CSV.") from error
    if not rows:
        raise _unusable(f"{path.name} is empty.", "Name a file of prices.")
    return rows


def _without_header(table: list[tuple[int, list[str]]]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Column names (empty where there are none), and the rows below them."""
    first = [cell.strip() for cell in table[0][1]]
    names = [cell for cell in first if cell and number_in(cell) is None and moment_in(cell) is None]
    if not names:
        return [], table
    return first, table[1:] or table  # a file of nothing but a header: its words are no prices, and are said to be none


def _time_column(names: Sequence[str], rows: list[tuple[int, list[str]]]) -> int | None:
    known = [at for at, name in enumerate(names) if name.strip().lower() in TIME_NAMES]
    looked_at = [row for _, row in rows[:50]]  # plain numbers are times under such a name only: else rather prices
    for at in known or range(len(names)):
        cells = [row[at] for row in looked_at if at < len(row) and row[at].strip()]
        plain = [cell for cell in cells if number_in(cell) is not None and not _COMPACT_DATE.fullmatch(cell.strip())]
        if cells and (known or not plain) and all(moment_in(cell) is not None for cell in cells):
            return at
    return None


def _price_column(
    file: str, names: Sequence[str], rows: list[tuple[int, list[str]]], time_at: int | None, wanted: str
) -> int:
    plain = [name.strip().lower().replace("_", " ") for name in names]
    if wanted.strip():
        asked = wanted.strip().lower().replace("_", " ")
        if asked in plain:
            return plain.index(asked)
        if asked.isdigit() and 0 < int(asked) <= len(names):
            return int(asked) - 1
        raise ConfigError(
            "price_column", f"{file} has no column {wanted.strip()!r}.", f"Choose one of: {', '.join(names)}."
        )
    for name in PRICE_NAMES:
        if name in plain:
            return plain.index(name)
    looked_at = [row for _, row in rows[:50]]
    numeric = [
        at
        for at in range(len(names))
        if at != time_at and any(number_in(row[at]) is not None for row in looked_at if at < len(row))
    ]
    if len(numeric) == 1:
        return numeric[0]
    raise ConfigError(
        "price_column",
        f"The price column of {file} cannot be guessed. The columns are: {', '.join(names)}.",
        "Choose the price column.",
        option="--set price_column=NAME",
    )


def _in_order(rows: list[_Row]) -> list[_Row]:
    """Oldest first; a row without a time stays behind the row before it."""
    times = [row.time for row in rows if row.time is not None]
    if len(times) > 1 and times[0] > times[-1]:
        rows = rows[::-1]
    placed, last = [], -math.inf
    for row in rows:
        last = last if row.time is None else row.time
        placed.append((last, row))
    return [row for _, row in sorted(placed, key=itemgetter(0))]


def _leave_out_repeated_times(rows: list[_Row]) -> Iterator[int]:
    """Use the first of two rows at one time; yield the lines of the others."""
    seen: set[float] = set()
    for row in rows:
        if row.time is None or row.price is None:
            continue
        if row.time in seen:
            row.price = None
            yield row.line
        seen.add(row.time)


def _stretches(rows: list[_Row], max_gap: float) -> tuple[tuple[float, ...], tuple[tuple[int, int], ...]]:
    kept = [at for at, row in enumerate(rows) if row.price is not None]
    times = [rows[at].time for at in kept]
    apart = [b - a for a, b in pairwise(times) if a is not None and b is not None]
    usual = median(apart) if apart else 0.0
    begins = [0]
    for number in range(1, len(kept)):
        rows_missing = kept[number] - kept[number - 1] - 1
        before, now = times[number - 1], times[number]
        waited = (now - before) / usual if usual > 0 and before is not None and now is not None else 0.0
        if max_gap > 0 and max(waited, rows_missing) > max_gap:
            begins.append(number)
    ends = [*begins[1:], len(kept)]
    prices = tuple(row.price for row in rows if row.price is not None)
    return prices, tuple((a, b) for a, b in zip(begins, ends, strict=True) if b > a)


def _unusable(cause: str, next_step: str) -> ConfigError:
    return ConfigError("dataset_file", cause, next_step, title=PRICES)
