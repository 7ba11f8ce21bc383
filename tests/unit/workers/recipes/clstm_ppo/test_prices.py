"""Price files as people have them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.prices import moment_in, number_in, read_prices


def write(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    ("text", "column", "prices"),
    [
        ("Date,Open,Close\n2024-01-01,9,1\n2024-01-02,9,2\n", "Close", (1, 2)),
        ("date;close\n01/02/2024;12,5\n01/03/2024;13,5\n", "close", (12.5, 13.5)),
        ("1.5\n2.5\n", "1", (1.5, 2.5)),
        ("20240101\t5\n20240102\t6\n", "2", (5, 6)),
        ('time,Adj_Close,close\n1700000000,"1,200.5",1\n1700000060,$3,2\n', "Adj_Close", (1200.5, 3)),
        ("Date,Close\n2024-01-03,3\n2024-01-02,2\n2024-01-01,1\n", "Close", (1, 2, 3)),
        ("\ufeffDate,Something\n2024-01-01T00:00:00Z,1\n2024-01-01T01:00:00Z,2\n", "Something", (1, 2)),
    ],
)
def test_a_table_is_read_as_people_write_it(tmp_path: Path, text: str, column: str, prices: tuple[float, ...]) -> None:
    read = read_prices(write(tmp_path, text))
    assert (read.column, read.prices, read.bad_rows) == (column, prices, 0)
    packed = tmp_path / "prices.csv.gz"
    packed.write_bytes(gzip.compress(text.encode("utf-8")))
    assert read_prices(packed).prices == prices


def test_numbers_and_moments() -> None:
    assert [number_in(text) for text in ("1,234.5", "12,5", " 3e2 ", "€7", "", "n/a")] == [
        1234.5,
        12.5,
        300,
        7,
        None,
        None,
    ]
    assert moment_in("1970-01-02") == 86_400 == moment_in("86400") == moment_in("19700102") == moment_in("01/02/1970")
    assert moment_in("1700000000000") == 1_700_000_000 and moment_in("soon") is None


def test_rows_that_cannot_be_used_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        "2024-01-01,1",
        "2024-01-02,",
        "2024-01-03,-4",
        "2024-01-04,2",
        "2024-01-04,9",
        "2024-01-05,nan",
        "",
        "2024-01-06,3",
    ]
    read = read_prices(write(tmp_path, "Date,Close\n" + "\n".join(rows) + "\n"))
    assert read.prices == (1, 2, 3) and (read.rows, read.bad_rows) == (7, 4)
    assert read.examples == ("line 3 has the price ''", "line 4 has the price '-4'", "line 7 has the price 'nan'")
    assert read.stretches == ((0, 3),)


def test_no_stretch_crosses_missing_time(tmp_path: Path) -> None:
    days = [1, 2, 3, 4, 15, 16, 17]
    text = "Date,Close\n" + "".join(f"2024-01-{day:02},{day}\n" for day in days)
    assert read_prices(write(tmp_path, text), max_gap=10).stretches == ((0, 4), (4, 7))
    assert read_prices(write(tmp_path, text), max_gap=11).stretches == ((0, 7),)
    assert read_prices(write(tmp_path, text), max_gap=0).stretches == ((0, 7),)
    without_times = "Close\n1\n2\n" + "-\n" * 4 + "3\n4\n"
    assert read_prices(write(tmp_path, without_times), max_gap=3).stretches == ((0, 2), (2, 4))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "{}", "prices.json")
    with pytest.raises(ConfigError, match="not a table"):
        read_prices(path)
