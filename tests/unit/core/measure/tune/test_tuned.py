"""The result of tuning, and comparisons in turns."""

from __future__ import annotations

import pytest

from core.measure.tune.tuned import COLUMNS, Comparison, Tuned
from tests.unit.core.measure.tune.made import RUN, failed, result

OWN = result(2)
BETTER = result(16, 150.0)
FASTER = Comparison((1.4, 1.5, 1.6))


def test_settings_that_win_in_turns_are_recommended() -> None:
    found = Tuned(RUN, (OWN, BETTER), FASTER)
    assert found.changes == {"batch_size": 16, "grad_accum_steps": 1}
    assert found.flags == ["--batch-size", "16", "--grad-accum-steps", "1"]
    text = "Micro-batch 16, accumulation 1: 1.50 × as fast as your settings (at least 1.34 ×, from 3 pairs of turns)."
    assert found.sentence == text
    shown = found.as_dict()
    assert shown["recommended"] == found.changes
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
    short = failed(2, "out_of_memory", "Rank 1: No memory.")
    small = result(1, 10.0)
    found = Tuned(RUN, (short, small))
    assert found.changes == {"batch_size": 1, "grad_accum_steps": 16}
    assert found.sentence.startswith("Your settings don't work here: Rank 1: No memory. The fastest that do: ")
    assert Tuned(RUN, (short,)).sentence == "No settings could be measured. Rank 1: No memory."


@pytest.mark.parametrize(
    ("ratios", "is_faster"),
    [
        ((1.30, 1.28, 1.32), True),
        ((1.10, 1.12, 1.08, 1.11), True),
        ((1.30, 1.30), False),  # too few pairs
        ((1.01, 1.01, 1.01), False),  # too little
        ((1.64, 0.95, 1.20), False),  # less than the pairs differ
        ((1.30, 0.90, 1.25, 0.92, 1.05), False),
        ((), False),
    ],
)
def test_a_gain_has_to_exceed_the_noise(ratios: tuple[float, ...], is_faster: bool) -> None:
    assert Comparison(ratios).is_faster == is_faster


def test_the_mean_gain_and_its_lower_bound() -> None:
    made = Comparison((1.30, 1.28, 1.32))
    assert made.gain == pytest.approx(1.30, abs=0.002) and 1.25 < made.certain_gain < made.gain
    assert (Comparison(()).gain, Comparison(()).certain_gain) == (1.0, 0.0)


def test_a_row_of_the_table() -> None:
    short = failed(8, "out_of_memory")
    assert OWN.cells(is_best=False) == ("2", "8", "–", "320 ms", "100 samples/s", "measured")
    assert BETTER.cells(is_best=True)[-1] == "fastest" and len(OWN.cells(is_best=False)) == len(COLUMNS)
    assert short.cells(is_best=False)[3:] == ("–", "–", "out of memory")
