"""Prices of energy and of a GPU's hour, in the person's own currency; kept beside the runs for the next estimate."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Final

from core.config.numbers import NumberError, read_number
from core.errors import ConfigError
from core.files.kept_settings import keep_settings, read_settings
from core.records import Limits

_FILE: Final = "prices.json"
_FORMAT: Final = "rankdeck-prices"
_PRICE: Final = re.compile(r"(?P<before>[^\d\s.,+-]*)\s*(?P<number>\d+(?:[.,]\d+)?|[.,]\d+)\s*(?P<after>[^\d\s.,+-]*)")
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"

Price = Annotated[float, Limits(0, 1e9)]


@dataclass(frozen=True, slots=True)
class Prices:
    """What a person pays.

    Attributes:
        kwh: For a kilowatt hour; None: not told.
        gpu_hour: For an hour of one GPU; None: not told.
        currency: The sign as it was written: "€", "EUR", "$"; may be empty.
        sign_first: It was written before the number.
    """

    kwh: Price | None = None
    gpu_hour: Price | None = None
    currency: Annotated[str, Limits(0, 16)] = ""
    sign_first: bool = False

    def amount(self, value: float) -> str:
        """An amount as the person writes it: "0.11 €", "$0.11"."""
        text = f"{value:.2f}" if value >= 0.01 or not value else f"{value:.2g}"
        if not self.currency:
            return text
        return f"{self.currency}{text}" if self.sign_first else f"{text}{_NO_BREAK}{self.currency}"

    def with_texts(self, kwh: str | None = None, gpu_hour: str | None = None) -> Prices:
        """With prices as they were typed; None leaves one as it is, an empty text takes it away.

        Raises:
            ConfigError: One is not a price.
        """
        changed = self
        if kwh is not None:
            value, changed = changed._read("price_kwh", kwh)
            changed = replace(changed, kwh=value)
        if gpu_hour is not None:
            value, changed = changed._read("price_gpu_hour", gpu_hour)
            changed = replace(changed, gpu_hour=value)
        return changed

    def _read(self, option: str, text: str) -> tuple[float | None, Prices]:
        """A typed price, and these prices with its currency."""
        if not text.strip():
            return None, self
        found = _PRICE.fullmatch(text.strip())
        if found is None or (found["before"] and found["after"]) or len(found["before"] + found["after"]) > 16:
            raise ConfigError(option, f"{text!r} is not a price.", "Write a number with its currency, such as 0.30 €.")
        sign = found["before"] or found["after"]
        try:
            value = float(read_number(found["number"]))
        except NumberError as error:
            raise ConfigError(option, f"{found['number']!r} {error}.", error.instead) from None
        return value, replace(self, currency=sign, sign_first=bool(found["before"])) if sign else self

    def as_typed(self, value: float | None) -> str:
        """A price as `with_texts` reads it."""
        if value is None:
            return ""
        text = f"{value:g}"
        if not self.currency:
            return text
        return f"{self.currency}{text}" if self.sign_first else f"{text} {self.currency}"


NO_PRICES: Final = Prices()


def read_prices() -> Prices:
    """What was kept; no prices where there is nothing."""
    return read_settings(_FILE, NO_PRICES)


def keep_prices(prices: Prices) -> None:
    """Keeps prices for the window and the command line.

    Raises:
        RankdeckError: The folder of runs cannot be written.
    """
    keep_settings(_FILE, _FORMAT, prices)
