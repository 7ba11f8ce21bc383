"""Prices as a person types them."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.measure.estimate.prices import NO_PRICES, Prices, keep_prices, read_prices

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("text", "value", "amount"),
    [
        ("0.30 €", 0.3, f"0.11{NBSP}€"),
        ("0,30€", 0.3, f"0.11{NBSP}€"),
        ("$2.50", 2.5, "$0.11"),
        ("EUR 3", 3.0, "EUR0.11"),
        (".5 kr", 0.5, f"0.11{NBSP}kr"),
        ("0.3", 0.3, "0.11"),
    ],
)
def test_a_price_brings_its_currency(text: str, value: float, amount: str) -> None:
    prices = NO_PRICES.with_texts(kwh=text)
    assert prices.kwh == value and prices.gpu_hour is None
    assert prices.amount(0.11) == amount
    assert NO_PRICES.with_texts(kwh=prices.as_typed(prices.kwh)) == prices


def test_small_amounts_are_not_rounded_away() -> None:
    assert Prices(currency="€").amount(0.00012) == f"0.00012{NBSP}€"
    assert Prices().amount(0.0) == "0.00"


@pytest.mark.parametrize("text", ["cheap", "-1 €", "1.2.3", "€ 1 €", "1 2", "inf", "1e400"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a price") as refusal:
        NO_PRICES.with_texts(gpu_hour=text)
    assert refusal.value.field == "price_gpu_hour"


def test_prices_are_kept_and_an_empty_text_takes_one_away() -> None:
    assert read_prices() == NO_PRICES
    prices = NO_PRICES.with_texts("0.30 €", "2 €")
    keep_prices(prices)
    assert read_prices() == prices
    assert prices.with_texts(gpu_hour=" ") == NO_PRICES.with_texts("0.30 €")
    assert prices.with_texts() is prices
