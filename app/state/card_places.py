"""Places of cards in a grid of one to four columns; charts of one height, devices last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

GAP: Final = 8
LEAST_HEIGHT: Final = 160
# From which width on there are two, three and four columns.
WIDTHS: Final = (640, 1240, 1800)
# Times the height that the devices need: more would stay blank.
MOST_ROOM: Final = 2


@dataclass(frozen=True, slots=True)
class Place:
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
    columns = _fewer_if_tall(columns_for(width, cards), cards, width, height, devices)
    rows, cell, rest, rest_width = _grid(columns, cards, width)
    unit = _unit(rows, height)
    shares_row = devices is not None and rest > 0 and devices(rest_width) <= unit
    below = 0
    if devices is not None and not shares_row:
        needed = devices(width)
        below = max(needed, LEAST_HEIGHT, min(_unit(rows + 1, height), MOST_ROOM * needed))
        unit = _unit(rows, height - below - GAP)
    places = [
        Place(number % columns * (cell + GAP), number // columns * (unit + GAP), cell, unit) for number in range(cards)
    ]
    if shares_row:
        places.append(Place(width - rest_width, (rows - 1) * (unit + GAP), rest_width, unit))
    elif below:
        places.append(Place(0, rows * (unit + GAP), width, below))
    return places


def _fewer_if_tall(columns: int, cards: int, width: int, height: int, devices: Callable[[int], int] | None) -> int:
    """As many columns as there is room for, or fewer where cards would be taller than wide, as on a 4K screen.

    Where there is that much room, the devices do not stand in a place that is far too large for them either.
    """
    for fewer in range(columns, 1, -1):
        rows, cell, rest, rest_width = _grid(fewer, cards, width)
        unit = _unit(rows, height)
        if unit <= 2 * LEAST_HEIGHT:
            return fewer
        has_place = devices is None or not rest or devices(rest_width) <= unit <= 2 * MOST_ROOM * devices(rest_width)
        if unit <= cell and has_place:
            return fewer
    rows, cell, *_ = _grid(min(2, columns), cards, width)
    return min(2, columns) if _unit(rows, height) <= cell else 1  # devices in too large a place, or one tall card


def _grid(columns: int, cards: int, width: int) -> tuple[int, int, int, int]:
    """Rows, the width of a card, how many places are left in the last row, and how wide these are together."""
    rows = math.ceil(cards / columns)
    cell = (width - GAP * (columns - 1)) // columns
    rest = rows * columns - cards
    return rows, cell, rest, rest * cell + GAP * (rest - 1)


def _unit(rows: int, height: int) -> int:
    """The height of a card, where the rows share the view's."""
    return max(LEAST_HEIGHT, (height - GAP * (rows - 1)) // rows) if rows else height
