"""The middle of turns, and ratios within a turn."""

from __future__ import annotations

from core.bench.spread import Spread, ratios


def test_the_middle_and_the_quartiles() -> None:
    assert Spread.of([5, 1, 2, 4, 3]) == Spread(3, 2, 4)
    assert Spread.of([7]) == Spread(7, 7, 7)
    assert Spread.of([]) is None


def test_a_ratio_is_taken_within_a_turn() -> None:
    assert ratios([2.0, 1.0, 3.0], [1.0, 0.5]) == [2.0, 2.0]
    assert ratios([1.0], [0.0]) == []
