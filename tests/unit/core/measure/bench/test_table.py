"""The table for people and as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from core.formatting import short_duration
from core.measure.bench.contenders import Kind
from core.measure.bench.table import percent, size_text, spread_text, table_of
from core.measure.trial import transport_title
from tests.unit.core.measure.bench.made import KILLED, SUMS, WEAK, bench, memory, steps

TURNS = {
    Kind.WEAK: WEAK,
    Kind.STRONG: WEAK,
    Kind.COMM: {0: [SUMS]},
    Kind.MEMORY: {0: [memory([1 << 28] * 40)]},
    Kind.ACCUMULATION: {0: steps(0.1), 1: [KILLED]},
}


def test_a_person_reads_medians_with_quartiles() -> None:
    table = table_of(bench(Kind.WEAK, WEAK))
    assert [column.title for column in table.shown] == [
        "Devices", "Mode", "Micro-batch", "Accumulation", "Global batch", "Step", "Samples/s", "Speed-up",
        "Efficiency", "Result",
    ]  # fmt: skip
    assert table.cells[0] == ["1", "one device", "4", "1", "4", "100 ms (100 to 150)", "40.0 (30.0 to 40.0)", "1.00 ×",
                              "100 %", "measured"]  # fmt: skip
    assert table.cells[1][-2:] == ["91 % (87 to 93)", "unclear"]


@pytest.mark.parametrize("kind", list(Kind))
def test_the_csv_has_all_columns_and_digits(kind: Kind) -> None:
    table = table_of(bench(kind, TURNS[kind]))
    rows = list(csv.DictReader(io.StringIO(table.as_csv())))
    assert len(rows) == len(table.rows) == len(table.cells)
    assert all(row["kind"] == kind.value and None not in row for row in rows)
    keys = {column.key for column in table.columns}
    assert all(key in keys for row in table.rows for key in row), "a value without a column"


def test_what_is_not_known_is_an_empty_cell() -> None:
    table = table_of(bench(Kind.STRONG, {0: steps(0.25), 1: [KILLED]}))
    row = list(csv.DictReader(io.StringIO(table.as_csv())))[1]
    assert row["step_s"] == "" and row["outcome"] == "process killed"
    assert table.cells[1][5:] == ["–", "–", "–", "–", "process killed"]
    assert table_of(bench(Kind.COMM, {0: [KILLED]})).cells == [["2", "–", "–", "–", "–", "–", "–", "process killed"]]


def test_units_stand_once() -> None:
    assert spread_text(0.0278, 0.0247, 0.0309, short_duration) == "27.8 ms (24.7 to 30.9)"
    assert spread_text(1.2, 0.9, 1.3, short_duration) == "1.20 s (900 ms to 1.30 s)"
    assert spread_text(0.9, 0.9, 0.9, percent) == "90 %"
    assert percent(None) == "–"


def test_sizes_and_transports() -> None:
    assert [size_text(size) for size in (512, 4096, 496640, 16 << 20, 1 << 30)] == [
        "512 bytes", "4 KiB", "485 KiB", "16 MiB", "1 GiB",
    ]  # fmt: skip
    assert transport_title("shared bf16") == "shared memory, bf16" and transport_title("nccl") == "NCCL"
