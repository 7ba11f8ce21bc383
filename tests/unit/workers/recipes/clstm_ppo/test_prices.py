"""Price files as people have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.prices import moment_in, read_prices


def write(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    ("text", "column", "prices"),
    [
        ("Date,Open,Close\n2024-01-01,9,1\n2024-01-02,9,2\n", "Close", (1, 2)),
        ("date;close\n2024-01-02;12.5\n2024-01-03;13.5\n", "close", (12.5, 13.5)),
        ("time\tAdj_Close\tclose\n1700000000\t1200.5\t1\n1700000060\t3\t2\n", "Adj_Close", (1200.5, 3)),
        ("\ufeffDate,Close\n2024-01-03,3\n2024-01-02,2\n2024-01-01,1\n", "Close", (1, 2, 3)),
        ("Price\n5\n6\n", "Price", (5, 6)),
    ],
)
def test_a_table_is_read_as_people_write_it(tmp_path: Path, text: str, column: str, prices: tuple[float, ...]) -> None:
    read = read_prices(write(tmp_path, text))
    assert (read.column, read.prices, read.bad_rows) == (column, prices, 0)


def test_moments() -> None:
    assert moment_in("1970-01-02") == 86_400 == moment_in("86400") == moment_in("19700102")
    assert moment_in("1700000000000") == 1_700_000_000 and moment_in("soon") is None


def test_rows_that_cannot_be_used_are_left_out_and_counted(tmp_path: Path) -> None:
    prices = ["01,1", "02,", "03,-4", "04,2", "04,9", "05,nan"]
    rows = [*(f"2024-01-{price}" for price in prices), "", "2024-01-06,3", "soon,4"]
    read = read_prices(write(tmp_path, "Date,Close\n" + "\n".join(rows) + "\n"))
    assert read.prices == (1, 2, 3) and (read.rows, read.bad_rows) == (8, 5)
    assert read.examples[:2] == ("line 3 has the price ''", "line 4 has the price '-4'")
    assert read.examples[2] == "line 6 has the same time as another"
    assert read.stretches == ((0, 3),)


def test_no_stretch_crosses_missing_time(tmp_path: Path) -> None:
    days = [1, 2, 3, 4, 15, 16, 17]
    text = "Date,Close\n" + "".join(f"2024-01-{day:02},{day}\n" for day in days)
    assert read_prices(write(tmp_path, text), max_gap=10).stretches == ((0, 4), (4, 7))
    assert read_prices(write(tmp_path, text), max_gap=11).stretches == ((0, 7),)
    assert read_prices(write(tmp_path, text), max_gap=0).stretches == ((0, 7),)
    without_times = "Close\n1\n2\n" + "-\n" * 4 + "3\n4\n"
    assert read_prices(write(tmp_path, without_times), max_gap=3).stretches == ((0, 2), (2, 4))
    assert read_prices(write(tmp_path, without_times), max_gap=4).stretches == ((0, 4),)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a table"):
        read_prices(write(tmp_path, "{}", "prices.json"))
    with pytest.raises(ConfigError, match="Its first line is: 2024-01-01, 1"):
        read_prices(write(tmp_path, "2024-01-01,1\n2024-01-02,2\n"))
