"""One outcome of all ranks' answers."""

from __future__ import annotations

from core.trials.answers import Answered, Death, RankAnswer, judge

FINE = RankAnswer("measured", 0.5, "shared")
SHORT = RankAnswer("out_of_memory", cause="No memory.")
LEFT = RankAnswer("failed", cause="A peer is gone.", secondary=True)
KILLED = Death("killed (SIGKILL)", by_force=True)


def test_all_measured() -> None:
    slow = RankAnswer("measured", 0.7, "shared", 0.2)
    assert judge([FINE, slow], {}) == Answered("measured", (0.5, 0.7), "shared", 0.2, answers=(FINE, slow))


def test_steps_of_two_batches_in_turns_become_pairs_of_all_ranks() -> None:
    first = RankAnswer("measured", 0.5, "shared", own_steps_s=[0.6, 0.7], found_steps_s=[0.4, 0.5])
    second = RankAnswer("measured", 0.5, "shared", own_steps_s=[0.8, 0.9, 1.0], found_steps_s=[0.3, 0.2, 0.1])
    assert judge([first, second], {}).pairs == (((0.6, 0.8), (0.4, 0.3)), ((0.7, 0.9), (0.5, 0.2)))
    assert judge([FINE, FINE], {}).pairs == ()


def test_the_rank_that_failed_first_is_named() -> None:
    assert judge([LEFT, SHORT], {}) == Answered("out_of_memory", cause="Rank 1: No memory.")
    assert judge([LEFT, None], {1: KILLED}) == Answered("killed", cause="The process of rank 1 killed (SIGKILL).")
    assert judge([None, None], {0: Death("ended", by_force=False), 1: KILLED}).cause.startswith("The process of rank 1")
    own = RankAnswer("failed", cause="It cannot.")
    assert judge([LEFT, own], {}).cause == "Rank 1: It cannot."


def test_a_process_that_ended_by_itself_has_failed() -> None:
    assert judge([None], {0: Death("ended with exit code 1: no such module", by_force=False)}).outcome == "failed"


def test_a_rank_without_an_answer_took_too_long() -> None:
    assert judge([FINE, None], {}) == Answered("timed_out", cause="Rank 1 did not finish in time.")
