"""Price files as people have them, and the market that is made of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the trading environment has its spaces")

from rankdeck.recipe import ConfigError
from tests.training.workers.clstm_ppo_parts import typed_options
from workers.recipes.clstm_ppo.market_data import load_market, open_files, save_market
from workers.recipes.clstm_ppo.prices import PriceFile, moment_in, number_in, read_prices
from workers.recipes.clstm_ppo.trading import Market, Stretch, Terms, Trading, make_market

pytestmark = pytest.mark.windows


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


SERIES = "Date,Open,Close\n" + "".join(f"2024-{1 + day // 28:02}-{1 + day % 28:02},5,{day + 1}\n" for day in range(300))
PLAIN: dict[str, Any] = {"price_column": "", "max_gap": 10.0, "max_bad_rows": 0.05, "val_fraction": 0.2, "window": 4}


@pytest.mark.parametrize(
    ("text", "changes", "field", "said"),
    [
        (SERIES, {"price_column": "Clsoe"}, "price_column", "Date, Open, Close"),
        (SERIES, {"price_column": "Date"}, "price_column", "0 usable prices"),
        ("a,b\n1,2\n3,4\n", {}, "price_column", "cannot be guessed"),
        ("Date,Close\n2024-01-01,x\n", {}, "price_column", "0 usable prices"),
        ("", {}, "dataset_file", "empty"),
        ("\n".join(SERIES.splitlines()[:32]), {}, "dataset_file", "longest stretch has 31"),
        (SERIES, {"window": 200}, "dataset_file", "a window of 200"),
        (
            SERIES.replace(",7\n", ",\n").replace(",9\n", ",\n"),
            {"max_bad_rows": 0.001},
            "max_bad_rows",
            "2 of 300 rows",
        ),
    ],
)
def test_a_file_that_cannot_be_traded_on_is_refused(
    tmp_path: Path, text: str, changes: dict[str, Any], field: str, said: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        open_files(str(path), lambda: [path], typed_options(**PLAIN | changes))
    assert caught.value.field == field and caught.value.next_step
    assert said in f"{caught.value.cause} {caught.value.next_step}"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "{}", "prices.json")
    with pytest.raises(ConfigError, match="not a table"):
        read_prices(path)


def made_market() -> Market:
    """Two files; the second has a gap."""
    first = PriceFile("a", tuple(100 * 1.01**n for n in range(200)), ((0, 200),), "1", 200, 0)
    second = PriceFile("b", tuple(50.0 + n % 3 for n in range(100)), ((0, 50), (50, 100)), "1", 100, 0)
    return make_market([first, second], held_out=0.25, window=4)


def test_what_is_held_out_is_later_and_never_trained_on(tmp_path: Path) -> None:
    market = made_market()
    assert [(stretch.first, stretch.past) for stretch in market.training] == [(0, 150), (200, 250), (250, 275)]
    assert [(stretch.first, stretch.past) for stretch in market.held_out] == [(150, 200), (275, 300)]
    kept = load_market(tmp_path, save_market(tmp_path, market))
    assert (
        (kept.prices == market.prices).all() and kept.training == market.training and kept.held_out == market.held_out
    )


@pytest.mark.parametrize("held_out", [False, True])
def test_an_episode_stays_in_its_stretch_and_sees_nothing_that_is_to_come(held_out: bool) -> None:
    market, terms = made_market(), Terms(fee=0.0, window=4, steps=30, short=True)
    stretches = market.held_out if held_out else market.training
    seen = set()
    for seed in range(120):
        environment = Trading(market, terms, held_out)
        observation, _ = environment.reset(seed=seed)
        again = Trading(market, terms, held_out).reset(seed=seed)[0]
        assert (observation == again).all(), "a seed is a place"
        first = environment._at
        (stretch,) = [s for s in stretches if s.first <= first < s.past]
        spoiled = Market(market.prices.copy(), market.training, market.held_out)
        spoiled.prices[first + 1 :] = 1.0
        assert (Trading(spoiled, terms, held_out).reset(seed=seed)[0] == observation).all()
        steps, over = 0, False
        while not over:
            _, _, ruined, over, info = environment.step(2)
            steps += 1
            assert not ruined and stretch.first <= environment._at < stretch.past
        assert 16 <= steps <= 30 and "holding all along" in info["summary"]
        seen.add(stretch)
    assert seen == set(stretches)


def test_trading_costs_what_it_costs() -> None:
    """Long at a fee of 1 %, through a rise of 10 %, then short, which changes the position by two."""
    prices = np.array([*[100.0] * 5, 110.0, 99.0, *[99.0] * 20])
    stretch = Stretch(0, len(prices), 0.1)
    environment = Trading(Market(prices, (stretch,), (stretch,)), Terms(0.01, 4, 30, short=True))
    environment._begin(stretch, 4)
    assert environment._observation().tolist() == [0, 0, 0, 0, 0]
    observation, reward, *_ = environment.step(2)
    assert reward == pytest.approx(100 * np.log(0.99 * 1.10))
    np.testing.assert_allclose(observation, [0, 0, 0, np.log(1.1) / 0.1, 1], atol=1e-6)
    observation, reward, *_ = environment.step(0)
    assert reward == pytest.approx(100 * np.log(0.98 * 1.10)) and observation[-1] == -1
    _, reward, *_ = environment.step(0)
    assert reward == 0, "holding on costs nothing"
    _, _, _, _, _ = environment.step(1)
    assert environment._summary().startswith("wealth × 1.162 with 3 trades")


def test_without_short_sales_there_are_two_positions() -> None:
    prices = np.array([100.0] * 40)
    stretch = Stretch(0, 40, 1.0)
    environment = Trading(Market(prices, (stretch,), (stretch,)), Terms(0.0, 4, 30, short=False))
    assert environment.action_space.n == 2
    environment.reset(seed=1)
    assert environment.step(1)[0][-1] == 1 and environment.step(0)[0][-1] == 0
