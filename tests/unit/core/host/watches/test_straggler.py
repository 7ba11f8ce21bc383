"""Who is found to make the others wait: from steps as ranks report them, and never from one look alone."""

from __future__ import annotations

import random

import pytest

from core.host.watches.straggler import ENOUGH, IN_A_ROW, Judgement, RankStep, Straggler, find_straggler, rank_step

pytestmark = pytest.mark.windows
TRANSFER_S = 0.01


def made(works: list[list[float]]) -> list[list[RankStep]]:
    """Steps of ranks that work so long each: they end together, once the last one's gradients have travelled."""
    return [
        [RankStep(max(step) + TRANSFER_S, max(step) - work + TRANSFER_S, 0.001, 4.0) for work in step] for step in works
    ]


def test_the_rank_that_works_longest_and_what_the_others_lose() -> None:
    found = find_straggler(made([[0.05, 0.09, 0.05]] * ENOUGH))
    assert found is not None
    assert (found.ranks, found.others, found.slowest) == ((1,), (0, 2), 1)
    assert found.lost == pytest.approx(0.4) and found.waits == pytest.approx((0.4, 0.0, 0.4))
    assert found.work_s == pytest.approx((0.05, 0.09, 0.05)) and found.step_s == pytest.approx(0.1)


def test_the_transfer_is_nobody_s_wait() -> None:
    steps = [[RankStep(0.1, 0.08, 0.0, 4.0), RankStep(0.1, 0.081, 0.0, 4.0)]] * ENOUGH
    assert find_straggler(steps) is None


def test_two_of_four_are_both_named() -> None:
    found = find_straggler(made([[0.05, 0.09, 0.05, 0.089]] * ENOUGH))
    assert found is not None and found.ranks == (1, 3)


def test_equal_ranks_that_are_late_in_turn_are_none() -> None:
    numbers = random.Random(1)
    for _ in range(200):
        works = [[0.05 + (0.05 if numbers.random() < 0.5 else 0.0), 0.05] for _ in range(100)]
        steps = made([step if numbers.random() < 0.5 else step[::-1] for step in works])
        assert find_straggler(steps) is None


def test_a_straggler_is_found_though_single_steps_are_long() -> None:
    numbers = random.Random(2)
    works = [[0.05 + numbers.expovariate(200), 0.08 + numbers.expovariate(200)] for _ in range(100)]
    works[10], works[60] = [3.0, 0.08], [9.0, 0.08]
    found = find_straggler(made(works))
    assert found is not None and found.ranks == (1,)


def test_too_few_steps_and_too_small_a_loss_say_nothing() -> None:
    late = made([[0.05, 0.09]] * ENOUGH)
    assert find_straggler(late[1:]) is None
    assert find_straggler(late) is not None
    little = made([[0.092, 0.1]] * ENOUGH)  # 7 % of a step
    assert find_straggler(little) is None
    assert find_straggler(little, least=0.05) is not None, "one that is known stays known for longer"


def verdicts(*found: Straggler | None) -> list[tuple[int, ...] | None]:
    """What is held after each look."""
    judgement, held = Judgement(), []
    for one in found:
        judgement = judgement.after(one)
        held.append(None if judgement.straggler is None else judgement.straggler.ranks)
    return held


def test_what_is_said_changes_only_after_looks_that_agree() -> None:
    first, second = (find_straggler(made([works] * ENOUGH)) for works in ([0.09, 0.05], [0.05, 0.09]))
    assert verdicts(*[first] * IN_A_ROW) == [None] * (IN_A_ROW - 1) + [(0,)]
    assert verdicts(first, first, None, first, first, None) == [None] * 6
    assert verdicts(first, second, first, second, first, second) == [None] * 6
    assert verdicts(*[first] * 3, None, None, first, None, None) == [None, None, *[(0,)] * 6]
    assert verdicts(*[first] * 3, None, None, None) == [None, None, *[(0,)] * 3, None]
    assert verdicts(*[first] * 3, *[second] * 3) == [None, None, *[(0,)] * 3, (1,)]


def test_it_is_over_only_at_a_smaller_loss_than_it_began_with() -> None:
    late = find_straggler(made([[0.05, 0.09]] * ENOUGH))
    judgement = Judgement()
    assert judgement.least == 0.1
    for _ in range(IN_A_ROW):
        judgement = judgement.after(late)
    assert judgement.straggler is late and judgement.least == 0.05


def test_a_step_line_as_ranks_write_it() -> None:
    line = {"event": "step", "step_time_s": 0.1, "sync_wait_s": 0.04, "data_wait_s": 0.0, "samples_per_s": 40.0}
    assert rank_step(line) == RankStep(0.1, 0.04, 0.0, 4.0)
    assert rank_step({**line, "sync_wait_s": 0.3}) == RankStep(0.1, 0.1, 0.0, 4.0), "no wait is longer than its step"
    for name in ("step_time_s", "sync_wait_s", "data_wait_s", "samples_per_s"):
        assert rank_step({**line, name: None}) is None, "a mode that does not measure it"
    assert rank_step({**line, "step_time_s": 0.0}) is None and rank_step({"step": 1}) is None
