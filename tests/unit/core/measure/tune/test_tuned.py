"""What tuning found, and comparisons in turns."""

from __future__ import annotations

import pytest

from core.measure.tune.search import Result
from core.measure.tune.tuned import TURNS, Comparison, Tuned, compare
from tests.unit.core.measure.tune.made import RUN, START, result

OWN = result(START)
BETTER = result(START.in_micro_batches(16), 150.0)
FASTER = Comparison((1.4, 1.5, 1.6))


def test_settings_that_win_in_turns_are_recommended() -> None:
    found = Tuned(RUN, (OWN, BETTER), FASTER)
    assert found.changes == {"batch_size": 16, "grad_accum_steps": 1}
    assert found.flags == ["--batch-size", "16", "--grad-accum-steps", "1"]
    text = "Micro-batch 16, accumulation 1: 1.50 × as fast as your settings (at least 1.34 ×, from 3 pairs of turns)."
    assert found.sentence == text
    shown = found.as_dict()
    assert shown["recommended"] == found.changes and shown["largest_micro_batch"] == 16
    assert [trial["samples_per_s"] for trial in shown["trials"]] == [100.0, 150.0]


def test_settings_that_do_not_win_stay_out() -> None:
    chance = Tuned(RUN, (OWN, BETTER), Comparison((1.4, 0.98, 1.1)))
    assert chance.changes == {} and chance.flags == [] and chance.as_dict()["recommended"] is None
    assert chance.sentence.startswith("Your settings are best") and "may be chance" in chance.sentence
    slower = Tuned(RUN, (OWN, BETTER), Comparison((0.9, 0.8, 0.7)))
    assert slower.sentence.endswith("were 0.70 to 0.90 × as fast when both took turns.")
    assert "could not be measured again" in Tuned(RUN, (OWN, BETTER), Comparison(())).sentence
    assert Tuned(RUN, (OWN,)).sentence == "Your settings are the fastest of those that were tried."


def test_a_stop_recommends_nothing() -> None:
    stopped = Tuned(RUN, (OWN, BETTER), is_stopped=True)
    assert stopped.changes == {}
    assert stopped.sentence.startswith("Stopped early. Fastest so far: micro-batch 16, accumulation 1;")
    assert "Nothing that was tried is faster" in Tuned(RUN, (OWN,), is_stopped=True).sentence
    assert Tuned(RUN, (), is_stopped=True).sentence == "No settings could be measured."


def test_settings_that_do_not_fit_are_replaced_without_a_comparison() -> None:
    short = Result(START, "out_of_memory", cause="Rank 1: No memory.")
    small = result(START.in_micro_batches(1), 10.0)
    found = Tuned(RUN, (short, small))
    assert found.changes == {"batch_size": 1, "grad_accum_steps": 16}
    assert found.sentence.startswith("Your settings don't work here: Rank 1: No memory. The fastest that do: ")
    assert Tuned(RUN, (short,)).sentence == "No settings could be measured. Rank 1: No memory."


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
