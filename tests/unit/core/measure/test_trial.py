"""Trials: one outcome of all ranks' answers, and the speed of all ranks together."""

from __future__ import annotations

import pytest

from core.config.mode import Mode
from core.measure.trial import Death, RankAnswer, TrialResult, judge, samples_per_s, step_seconds
from tests.unit.core.measure.tune.made import RUN, run

FINE = RankAnswer("measured", 0.5, "shared")
SHORT = RankAnswer("out_of_memory", cause="No memory.")
LEFT = RankAnswer("failed", cause="A peer is gone.", secondary=True)
KILLED = Death("killed (SIGKILL)", by_force=True)


def test_all_measured() -> None:
    slow = RankAnswer("measured", 0.7, "shared", 0.2)
    assert judge([FINE, slow], {}) == TrialResult("measured", (0.5, 0.7), "shared", 0.2, answers=(FINE, slow))


def test_steps_of_two_batches_in_turns_become_pairs_of_all_ranks() -> None:
    first = RankAnswer("measured", 0.5, "shared", own_steps_s=[0.6, 0.7], found_steps_s=[0.4, 0.5])
    second = RankAnswer("measured", 0.5, "shared", own_steps_s=[0.8, 0.9, 1.0], found_steps_s=[0.3, 0.2, 0.1])
    assert judge([first, second], {}).pairs == (((0.6, 0.8), (0.4, 0.3)), ((0.7, 0.9), (0.5, 0.2)))
    assert judge([FINE, FINE], {}).pairs == ()


def test_the_rank_that_failed_first_is_named() -> None:
    assert judge([LEFT, SHORT], {}) == TrialResult("out_of_memory", cause="Rank 1: No memory.")
    assert judge([LEFT, None], {1: KILLED}) == TrialResult("killed", cause="The process of rank 1 killed (SIGKILL).")
    assert judge([None, None], {0: Death("ended", by_force=False), 1: KILLED}).cause.startswith("The process of rank 1")
    own = RankAnswer("failed", cause="It cannot.")
    assert judge([LEFT, own], {}).cause == "Rank 1: It cannot."


def test_a_process_that_ended_by_itself_has_failed() -> None:
    assert judge([None], {0: Death("ended with exit code 1: no such module", by_force=False)}).outcome == "failed"


def test_a_rank_without_an_answer_took_too_long() -> None:
    assert judge([FINE, None], {}) == TrialResult("timed_out", cause="Rank 1 did not finish in time.")


def test_ranks_in_step_wait_for_the_slowest() -> None:
    assert samples_per_s(RUN, (0.5, 1.0)) == 32
    assert step_seconds(RUN, (0.5, 1.0)) == 1.0


def test_independent_ranks_add_up() -> None:
    apart = run(Mode.INDEPENDENT)
    assert samples_per_s(apart, (0.5, 1.0)) == 64 + 32
    assert step_seconds(apart, (0.5, 1.0)) == 0.75


def test_rounds_belong_to_the_steps_between_them_and_end_with_the_slowest() -> None:
    rounds = run(Mode.INDEPENDENT, sync_every=10)
    assert step_seconds(rounds, (0.5, 1.0), 2.0) == pytest.approx(1.2)
    assert samples_per_s(rounds, (0.5, 1.0), 2.0) == pytest.approx(2 * 32 / 1.2)
