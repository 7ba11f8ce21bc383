"""Places of cards in a grid of one to four columns; charts of one height, devices last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

GAP: Final = 8
LEAST_HEIGHT: Final = 160
WIDTHS: Final = (640, 1240, 1800)
"""From which width on there are two, three and four columns."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle in pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def bottom(self) -> int:
        """The first row of pixels below it."""
        return self.y + self.height


def columns_for(width: int, cards: int) -> int:
    """How many cards stand side by side."""
    return max(1, min(cards, 1 + sum(width >= least for least in WIDTHS)))


def place_cards(cards: int, width: int, height: int, devices: Callable[[int], int] | None = None) -> list[Place]:
    """Places for cards, row by row, and for the devices behind them; as high as the view where that is high enough.

    Args:
        cards: How many, without the devices.
        width: Of the view.
        height: Of the view.
        devices: Gives the height that their card needs at a width; None without one.
    """
    columns = columns_for(width, cards)
    rows = math.ceil(cards / columns)
    cell = (width - GAP * (columns - 1)) // columns
    rest = rows * columns - cards
    unit = _unit(rows, height)
    rest_width = rest * cell + GAP * (rest - 1)
    shares_row = devices is not None and rest > 0 and devices(rest_width) <= unit
    below = 0
    if devices is not None and not shares_row:
        below = max(devices(width), _unit(rows + 1, height))
        unit = _unit(rows, height - below - GAP)
    places = [
        Place(number % columns * (cell + GAP), number // columns * (unit + GAP), cell, unit) for number in range(cards)
    ]
    if shares_row:
        places.append(Place(width - rest_width, (rows - 1) * (unit + GAP), rest_width, unit))
    elif below:
        places.append(Place(0, rows * (unit + GAP), width, below))
    return places


def _unit(rows: int, height: int) -> int:
    """The height of a card, where the rows share the view's."""
    return max(LEAST_HEIGHT, (height - GAP * (rows - 1)) // rows) if rows else height
