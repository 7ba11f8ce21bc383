"""The market that is made of price files, refused or kept, and what it is to trade in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the trading environment has its spaces")

from rankdeck.recipe import ConfigError
from tests.unit.workers.recipes.clstm_ppo.made import typed_options
from tests.unit.workers.recipes.clstm_ppo.test_prices import write
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.prices import PriceFile
from workers.recipes.clstm_ppo.trading import (
    Market,
    Stretch,
    Trading,
    load_market,
    make_market,
    open_files,
    save_market,
)


def terms(*, fee: float, allow_short: bool) -> Options:
    return typed_options(fee=fee, window=4, trading_steps=30, allow_short=allow_short)


def made_market() -> Market:
    first = PriceFile("a", tuple(100 * 1.01**n for n in range(200)), ((0, 200),), "1", 200, 0)
    second = PriceFile("b", tuple(50.0 + n % 3 for n in range(100)), ((0, 50), (50, 100)), "1", 100, 0)
    return make_market([first, second], held_out=0.25, window=4)


@pytest.mark.parametrize("held_out", [False, True])
def test_an_episode_stays_in_its_stretch_and_sees_nothing_that_is_to_come(held_out: bool) -> None:
    market, rules = made_market(), terms(fee=0.0, allow_short=True)
    stretches = market.held_out if held_out else market.training
    seen = set()
    for seed in range(120):
        environment = Trading(market, rules, held_out)
        observation, _ = environment.reset(seed=seed)
        again = Trading(market, rules, held_out).reset(seed=seed)[0]
        assert (observation == again).all(), "a seed is a place"
        first = environment._at
        (stretch,) = [s for s in stretches if s.first <= first < s.past]
        spoiled = Market(market.prices.copy(), market.training, market.held_out)
        spoiled.prices[first + 1 :] = 1.0
        assert (Trading(spoiled, rules, held_out).reset(seed=seed)[0] == observation).all()
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
    environment = Trading(Market(prices, (stretch,), (stretch,)), terms(fee=0.01, allow_short=True))
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
    environment = Trading(Market(prices, (stretch,), (stretch,)), terms(fee=0.0, allow_short=False))
    assert environment.action_space.n == 2
    environment.reset(seed=1)
    assert environment.step(1)[0][-1] == 1 and environment.step(0)[0][-1] == 0


SERIES = "Date,Open,Close\n" + "".join(f"2024-{1 + day // 28:02}-{1 + day % 28:02},5,{day + 1}\n" for day in range(300))
PLAIN: dict[str, Any] = {"price_column": "", "max_gap": 10.0, "max_bad_rows": 0.05, "val_fraction": 0.2, "window": 4}


@pytest.mark.parametrize(
    ("text", "changes", "field", "said"),
    [
        (SERIES, {"price_column": "Clsoe"}, "price_column", "Date, Open, Close"),
        (SERIES, {"price_column": "Date"}, "price_column", "0 usable prices"),
        ("a,b\n1,2\n3,4\n", {}, "price_column", "no column named adj close"),
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


def test_what_is_held_out_is_later_and_never_trained_on(tmp_path: Path) -> None:
    market = made_market()
    assert [(stretch.first, stretch.past) for stretch in market.training] == [(0, 150), (200, 250), (250, 275)]
    assert [(stretch.first, stretch.past) for stretch in market.held_out] == [(150, 200), (275, 300)]
    kept = load_market(tmp_path, save_market(tmp_path, market))
    assert (
        (kept.prices == market.prices).all() and kept.training == market.training and kept.held_out == market.held_out
    )
