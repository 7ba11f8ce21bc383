"""The comparison in turns."""

from __future__ import annotations

import pytest

from core.tune.comparison import TURNS, Comparison, compare


def test_both_begin_a_pair_equally_often_within_one() -> None:
    firsts = TURNS[::2]
    assert sorted(TURNS) == [0, 0, 0, 1, 1, 1]
    assert abs(firsts.count(0) - firsts.count(1)) == 1


def test_a_machine_that_gets_slower_does_not_decide() -> None:
    speeds = [100.0 * 0.98**turn for turn in range(6)]  # the same settings in both places
    made = compare(speeds)
    assert not made.is_faster
    assert made.gain == pytest.approx(1.0, abs=0.01)


def test_faster_in_every_pair_is_faster() -> None:
    made = compare([100.0, 130.0, 128.0, 100.0, 99.0, 131.0])
    assert made.is_faster
    assert made.gain == pytest.approx(1.301, abs=0.002)
    assert made.range == "1.28 to 1.32 ×"


def test_one_pair_that_disagrees_or_too_few_or_too_little_are_noise() -> None:
    assert not compare([100.0, 130.0, 99.0, 100.0]).is_faster
    assert not compare([100.0, 130.0, 130.0]).is_faster
    assert not compare([100.0, 101.0, 101.0, 100.0]).is_faster
    assert compare([]) == Comparison(()) and compare([]).gain == 1.0 and compare([]).range == ""
