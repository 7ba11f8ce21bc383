"""Places of cards at every width."""

from __future__ import annotations

import pytest

from app.charts.card_grid import GAP, LEAST_HEIGHT, columns_for, place_cards


@pytest.mark.parametrize(("width", "columns"), [(400, 1), (760, 2), (1300, 3), (3000, 4)])
def test_one_to_four_columns_by_width(width: int, columns: int) -> None:
    assert columns_for(width, 20) == columns
    assert columns_for(width, 1) == 1


@pytest.mark.parametrize("cards", [0, 1, 3, 4, 7, 100])
@pytest.mark.parametrize("width", [300, 900, 1300, 2500])
def test_cards_are_of_one_size_and_lie_beside_each_other(cards: int, width: int) -> None:
    places = place_cards(cards, width, 600)
    assert len(places) == cards and len({(place.width, place.height) for place in places}) <= 1
    for number, one in enumerate(places):
        assert one.x >= 0 and one.x + one.width <= width and one.height >= min(LEAST_HEIGHT, 600)
        for other in places[number + 1 :]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert beside or one.bottom + GAP <= other.y or other.bottom + GAP <= one.y


def test_they_fill_the_view_where_they_fit() -> None:
    assert place_cards(4, 1000, 600)[-1].bottom in (599, 600)
    assert place_cards(40, 1000, 600)[-1].bottom > 600


def test_on_a_large_screen_cards_are_not_taller_than_wide() -> None:
    places = place_cards(4, 3560, 1850)
    assert len({place.y for place in places}) == 2, "two rows of two"
    assert all(place.height <= place.width for place in places) and places[-1].bottom in range(1846, 1851)
    (one,) = place_cards(1, 500, 900)
    assert (one.width, one.height) == (500, 900), "a card alone has all the room"
    assert {place.width for place in place_cards(10, 1300, 600)} == {428}, "where cards are low, as many as fit"
