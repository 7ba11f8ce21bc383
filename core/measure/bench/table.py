"""The table of a benchmark, for people and as CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.config.mode import mode_label
from core.formatting import UNKNOWN, memory_size, number, rate, short_duration
from core.measure.bench.contenders import Kind
from core.measure.bench.rows import Bench, Row, rows_of
from core.measure.trial import transport_title


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: In the CSV file.
        title: Over it; empty: it is in the CSV file only.
        text: A row's cell, for a person.
        is_text: It is aligned to the left.
        usual: A cell as wide as most will be once there is a spread; empty: none is wider than the title.
    """

    key: str
    title: str = ""
    text: Callable[[Row], str] = lambda _: ""
    is_text: bool = False
    usual: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """What was measured.

    Attributes:
        columns: In their order.
        rows: By column's key.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def shown(self) -> list[Column]:
        return [column for column in self.columns if column.title]

    @property
    def cells(self) -> list[list[str]]:
        return [[column.text(row) for column in self.shown] for row in self.rows]

    def as_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.key for column in self.columns])
        for row in self.rows:
            writer.writerow(["" if (value := row.get(column.key)) is None else value for column in self.columns])
        return text.getvalue()


def table_of(bench: Bench) -> Table:
    """The table of what was measured so far."""
    return Table(_COLUMNS[bench.kind], tuple(rows_of(bench)))


def size_text(size: int) -> str:
    """A tensor's size: "64 KiB", "3.4 MiB"."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{number(size / step) if size % step else size // step} {unit}"
    return f"{size} bytes"


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.0f} %"


def spread_text(value: float, low: float, high: float, text: Callable[[float], str]) -> str:
    """The middle and the quartiles, the unit once: "27.8 ms (24.7 to 30.9)"; only the middle where they are alike."""
    middle, *ends = (text(each) for each in (value, low, high))
    if ends == [middle, middle]:
        return middle
    unit = middle.partition(" ")[2]
    if unit and all(end.endswith(f" {unit}") for end in ends):
        ends = [end.removesuffix(f" {unit}") for end in ends]
    return f"{middle} ({ends[0]} to {ends[1]})"


def _spread(key: str, text: Callable[[float], str]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(key)
        return UNKNOWN if value is None else spread_text(value, row[f"{key}_low"], row[f"{key}_high"], text)

    return cell


def _plain(key: str) -> Callable[[Row], str]:
    return lambda row: UNKNOWN if row.get(key) is None else f"{row[key]:,}"


def _word(key: str) -> Callable[[Row], str]:
    return lambda row: str(row.get(key) or UNKNOWN)


def _speed_text(value: float) -> str:
    return rate(value, "samples/s").removesuffix(" samples/s")


def _spread_columns(key: str, title: str, text: Callable[[float], str], usual: str) -> tuple[Column, ...]:
    return (Column(key, title, _spread(key, text), usual=usual), Column(f"{key}_low"), Column(f"{key}_high"))


_KIND: Final = Column("kind")
_DEVICES: Final = Column("devices", "Devices", _plain("devices"))
_BATCH: Final = (
    Column("micro_batch", "Micro-batch", _plain("micro_batch")),
    Column("accumulation", "Accumulation", _plain("accumulation")),
    Column("global_batch", "Global batch", _plain("global_batch")),
)
_MODE: Final = Column("mode", "Mode", lambda row: mode_label(row["mode"], UNKNOWN), is_text=True)
_TURNS: Final = Column("turns")
_OUTCOME: Final = Column("outcome", "Result", _word("outcome"), is_text=True)
_SPEED: Final = _spread_columns("samples_per_s", "Samples/s", _speed_text, "8,888 (8,888 to 8,888)")
_STEP: Final = _spread_columns("step_s", "Step", short_duration, "88.8 ms (88.8 to 88.8)")
_SCALING: Final = (
    _KIND,
    _DEVICES,
    _MODE,
    Column("exchange"),
    *_BATCH,
    *_STEP,
    *_SPEED,
    Column("speedup", "Speed-up", lambda row: UNKNOWN if row["speedup"] is None else f"{row['speedup']:.2f} ×"),
    *(Column(f"speedup_{end}") for end in ("low", "high")),
    *_spread_columns("efficiency", "Efficiency", percent, "88 % (88 to 88)"),
    Column("target"),
    Column("verdict"),
    _TURNS,
    Column("outcome", "Result", lambda row: str(row["verdict"] or row["outcome"]), is_text=True),
)
_COLUMNS: Final[dict[Kind, tuple[Column, ...]]] = {
    Kind.WEAK: _SCALING,
    Kind.STRONG: _SCALING,
    Kind.COMM: (
        _KIND,
        _DEVICES,
        Column(
            "transport",
            "Transport",
            lambda row: transport_title(row.get("transport") or ""),
            is_text=True,
            usual="shared memory, bf16",
        ),
        Column(
            "size_bytes",
            "Size",
            lambda row: (
                UNKNOWN
                if row.get("size_bytes") is None
                else size_text(row["size_bytes"]) + (" (model)" if row["is_model"] else "")
            ),
            usual="8.88 MiB (model)",
        ),
        Column("is_model"),
        *_spread_columns("time_s", "Time", short_duration, "0.888 ms (0.888 to 0.888)"),
        Column("mb_per_s", "MB/s", lambda row: number(row.get("mb_per_s")), usual="88,888"),
        Column("bus_mb_per_s", "Bus MB/s", lambda row: number(row.get("bus_mb_per_s")), usual="88,888"),
        Column("sums", "Sums", _plain("sums")),
        _OUTCOME,
    ),
    Kind.MEMORY: (
        _KIND,
        _DEVICES,
        Column("rank", "Device", _plain("rank")),
        _MODE,
        *_BATCH[:2],
        Column("global_batch"),
        Column("peak_bytes", "Peak", lambda row: memory_size(row.get("peak_bytes")), usual="88.88 GiB"),
        _TURNS,
        Column("steps", "Steps", _plain("steps")),
        Column(
            "bytes_per_step",
            "Bytes a step",
            lambda row: (
                UNKNOWN
                if row.get("bytes_per_step") is None
                else f"{row['bytes_per_step']:,.0f} ± {row['bytes_per_step_error']:,.0f}"
            ),
            usual="888,888 ± 888,888",
        ),
        Column("bytes_per_step_error"),
        Column("verdict"),
        Column("outcome", "Result", lambda row: str(row.get("verdict") or row["outcome"]), is_text=True),
    ),
    Kind.ACCUMULATION: (
        _KIND,
        _DEVICES,
        _MODE,
        *_BATCH,
        *_STEP,
        *_SPEED,
        *_spread_columns("step_ratio", "Time ÷ fastest", lambda value: f"{value:.2f}", "8.88 (8.88 to 8.88)"),
        _TURNS,
        _OUTCOME,
    ),
}
