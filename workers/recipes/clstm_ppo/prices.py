"""Reads a price file: finds its price column, leaves out unusable rows, and splits it at gaps."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from rankdeck.recipe import ConfigError

PRICES: Final = "The price file cannot be used"
SUFFIXES: Final = (".csv", ".tsv", ".txt")
PRICE_NAMES: Final = ("adj close", "close", "closing price", "price", "last", "value")
TIME_NAMES: Final = ("date", "datetime", "time", "timestamp", "open time", "day")
_DELIMITERS: Final = ",;\t|"
_SHOWN: Final = 3

# The number of a line, and its cells.
Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class PriceFile:
    """The usable prices of a file, oldest first.

    Attributes:
        prices: All above 0.
        stretches: Runs without a gap: first and one past the last, in order.
        column: The prices' column.
        rows: Rows with anything in them, the header left out.
        bad_rows: Rows left out: no price, a price that is not above 0, no time, the same time as another.
        examples: Texts about the first bad ones.
    """

    name: str
    prices: tuple[float, ...]
    stretches: tuple[tuple[int, int], ...]
    column: str
    rows: int
    bad_rows: int
    examples: tuple[str, ...] = ()


def read_prices(path: Path, column: str = "", max_gap: float = 10.0) -> PriceFile:
    """Read a table of prices in text, whose first line has the columns' names; raise `ConfigError`.

    Args:
        path: The file.
        column: The prices' column. Empty: one that is named as prices are.
        max_gap: Usual intervals between two rows, or bad rows in succession, above which a new stretch begins;
            0: never.
    """
    (_, names), *rows = _table(path)
    price_at = _price_column(path.name, names, column)
    time_at = next((at for at, name in enumerate(names) if _plain(name) in TIME_NAMES), None)
    prices: dict[float, float] = {}
    examples: list[str] = []
    for number, (line, row) in enumerate(rows):
        text, price = _cell(row, price_at), _number(_cell(row, price_at))
        time = float(number) if time_at is None else moment_in(_cell(row, time_at))
        if price is None or not 0 < price < math.inf:
            examples.append(f"line {line} has the price {text!r}")
        elif time is None or time in prices:
            examples.append(f"line {line} has {'no time' if time is None else 'the same time as another'}")
        else:
            prices[time] = price
    if len(prices) < 2:
        first = f" The first: {examples[0]}." if examples else ""
        raise ConfigError(
            "price_column",
            f"{path.name} holds {len(prices)} usable prices in its column {names[price_at]!r}.{first}",
            "Choose a file of prices, or another price column.",
            option="--set price_column=NAME",
            title=PRICES,
        )
    times = sorted(prices)
    in_order = tuple(prices[time] for time in times)
    # Without times rows are apart by their numbers, which differ by one where none is missing.
    most = max_gap if time_at is not None else max_gap + 1
    stretches = _stretches(times, most if max_gap > 0 else math.inf)
    shown = tuple(examples[:_SHOWN])
    return PriceFile(path.name, in_order, stretches, names[price_at], len(rows), len(examples), shown)


def moment_in(text: str) -> float | None:
    """Seconds since 1970 of a time as ISO 8601 has it, or such a number; None for none.

    Without a zone, all in the same one.
    """
    number = None if len(text) == 8 and text.isdigit() else _number(text)  # 20240131 is a date
    if number is not None:
        return number / 1000 if abs(number) > 1e11 else number  # milliseconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _cell(row: Sequence[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", " ")


def _table(path: Path) -> list[Row]:
    """The rows of a file, of which the first has the names."""
    if not path.name.lower().endswith(SUFFIXES):
        raise _unusable(
            f"{path.name} is not a table of prices in text.", f"Name a file that ends with {', '.join(SUFFIXES)}."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
        delimiter = max(_DELIMITERS, key=text.lstrip().partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unusable(f"{path.name} cannot be read as a table ({error}).", "Save it as CSV in UTF-8.") from error
    if not rows:
        raise _unusable(f"{path.name} is empty.", "Name a file of prices.")
    return rows


def _price_column(file: str, names: Sequence[str], wanted: str) -> int:
    plain = [_plain(name) for name in names]
    for name in [_plain(wanted)] if wanted.strip() else PRICE_NAMES:
        if name in plain:
            return plain.index(name)
    named = repr(wanted.strip()) if wanted.strip() else f"named {', '.join(PRICE_NAMES)}"
    raise ConfigError(
        "price_column",
        f"{file} has no column {named}. Its first line is: {', '.join(names)}.",
        "Choose the price column; the first line must have the columns' names.",
        option="--set price_column=NAME",
    )


def _stretches(times: Sequence[float], most: float) -> tuple[tuple[int, int], ...]:
    """The runs in which no two times are more than `most` usual intervals apart."""
    usual = median(later - earlier for earlier, later in pairwise(times))
    gaps = [at for at, (earlier, later) in enumerate(pairwise(times), 1) if later - earlier > most * usual]
    return tuple(pairwise([0, *gaps, len(times)]))


def _unusable(cause: str, next_step: str) -> ConfigError:
    return ConfigError("dataset_file", cause, next_step, title=PRICES)
