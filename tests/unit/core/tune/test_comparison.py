"""The comparison in turns."""

from __future__ import annotations

import pytest

from core.tune.comparison import TURNS, Comparison, compare


def test_both_begin_a_pair_equally_often_within_one() -> None:
    firsts = TURNS[::2]
    assert TURNS.count(0) == TURNS.count(1) == firsts.count(0) + firsts.count(1)
    assert firsts.count(0) == firsts.count(1)


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
    assert 1.25 < made.certain_gain < made.gain


def test_too_few_pairs_or_too_little_are_noise() -> None:
    assert not compare([100.0, 130.0, 130.0, 100.0]).is_faster
    assert not compare([100.0, 130.0, 130.0]).is_faster
    assert not compare([100.0, 101.0, 101.0, 100.0, 100.0, 101.0]).is_faster
    assert compare([]) == Comparison(()) and compare([]).gain == 1.0 and compare([]).range == ""
    assert compare([]).certain_gain == 0.0


def test_a_gain_has_to_exceed_what_the_pairs_differ() -> None:
    assert Comparison((1.10, 1.12, 1.08, 1.11)).is_faster
    assert not Comparison((1.64, 0.95, 1.20)).is_faster
    assert not Comparison((1.30, 0.90, 1.25, 0.92, 1.05)).is_faster
    assert Comparison((1.30, 0.90, 1.25, 0.92, 1.05) * 8).is_faster, "with more pairs the mean is more certain"


def test_one_turn_in_which_another_program_was_in_the_way_does_not_decide() -> None:
    assert not Comparison((*(1.0,) * 23, 9.0)).is_faster
    assert not Comparison((1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 1.2, 1.2)).is_faster
