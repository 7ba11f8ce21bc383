"""The market that is made of price files, and what it is to trade in it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the trading environment has its spaces")

from tests.unit.workers.recipes.clstm_ppo.made import typed_options
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.prices import PriceFile
from workers.recipes.clstm_ppo.trading import Market, Stretch, Trading, make_market


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
