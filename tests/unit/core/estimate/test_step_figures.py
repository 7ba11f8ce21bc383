"""Seconds of a step on one device, against values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config.batch import Batch
from core.estimate.step_figures import RankTimes, TimedStep, TimedTurns, made_alone, made_together
from tests.unit.core.estimate.made import SHARED


def turns(*passes: float, threads: int = 1, few_s: float = 0.1, update_s: float = 0.5) -> TimedTurns:
    return TimedTurns(threads, few_s, tuple(TimedStep(True, False, 0.0, time_s, update_s) for time_s in passes))


def rank(together: TimedTurns, samples: int = 8, alone: TimedTurns | None = None) -> RankTimes:
    return RankTimes(8, 2, samples, batch=8, chunk=32, tokens_per_sample=100, together=together, alone=alone)


def test_a_step_grows_with_its_samples() -> None:
    assert SHARED.step_s(Batch.of(8, 2, 1)) == pytest.approx(1.18)
    assert SHARED.step_s(Batch.of(4, 2, 3)) == pytest.approx(1.72)  # 12 samples of 0.135 s, and the update
    assert SHARED.step_s(Batch.of(8, 2, 1), 0.5) == pytest.approx(1.13)
    assert replace(SHARED, prepare_s=0.1).step_s(Batch.of(8, 2, 1)) == pytest.approx(1.98)


def test_devices_that_are_alike_count_by_their_mean() -> None:
    found = made_together([rank(turns(1.0, 2.0, 9.0)), rank(turns(3.0, 4.0, 5.0))], [0, 1])
    assert found.pass_s == pytest.approx(3.0)  # medians of 2 and 4 s
    assert (found.update_s, found.steps, found.devices, found.tokens_per_sample) == (0.5, 3, 2, 100)
    other = made_together([rank(turns(1.0, 2.0, 9.0)), rank(turns(3.0, 4.0, 5.0))], [1])
    assert (other.pass_s, other.devices) == (4.0, 2)


def test_in_step_all_wait_for_whichever_is_slowest() -> None:
    # The slowest of each step takes 3, 4 and 9 s, in the middle 4; each rank for itself takes 2 and 4 s.
    assert made_together([rank(turns(1.0, 2.0, 9.0)), rank(turns(3.0, 4.0, 5.0))], [0, 1]).wait_s == 0.0
    # They are slow by turns: 2 s in the middle, where each takes 1 s.
    by_turns = [rank(turns(2.0, 1.0, 1.0, 1.0, 2.0)), rank(turns(1.0, 2.0, 2.0, 1.0, 1.0))]
    assert made_together(by_turns, [0, 1]).wait_s == pytest.approx(1.0)


def test_the_first_step_of_a_turn_does_not_count_where_there_are_more() -> None:
    first, second = TimedStep(False, True, 0.0, 9.0, 9.0), TimedStep(True, False, 0.0, 1.0, 0.5)
    alone = made_alone(rank(turns(1.0), alone=TimedTurns(2, 0.1, (first, second))))
    assert alone is not None
    assert (alone.pass_s, alone.update_s, alone.steps, alone.threads, alone.devices) == (1.0, 0.5, 1, 2, 1)
    only = made_alone(rank(turns(1.0), alone=TimedTurns(2, 0.1, (first,))))
    assert only is not None and only.pass_s == 9.0
    assert made_alone(rank(turns(1.0))) is None


def test_fewer_samples_are_extended() -> None:
    # 2 samples in 0.4 s and 4 in 0.6 s: 0.1 s each, and 0.2 s whatever the number.
    assert made_together([rank(turns(0.6, few_s=0.4), samples=4)], [0]).pass_s == pytest.approx(1.0)
    assert made_together([rank(turns(0.4), samples=2)], [0]).pass_s == pytest.approx(1.6)


def test_what_a_chunk_needs_is_shared_out_over_its_samples() -> None:
    begins, inside = TimedStep(True, True, 4.2, 1.0, 0.5), TimedStep(True, False, 0.2, 1.0, 0.5)
    found = made_together([rank(TimedTurns(1, 0.1, (begins, inside, inside)))], [0])
    assert found.prepare_s == pytest.approx(0.2 / 8 + 4.0 / 32)
    each = made_together([rank(TimedTurns(1, 0.1, (begins,)))], [0])
    assert each.prepare_s == pytest.approx(4.2 / 32)


def test_power_is_known_only_with_a_counter_on_each_device() -> None:
    counted, not_counted = replace(turns(1.0), power_w=200.0), turns(1.0)
    assert made_together([rank(counted), rank(replace(counted, power_w=100.0))], [0, 1]).power_w == 150.0
    assert made_together([rank(counted), rank(not_counted)], [0, 1]).power_w is None
