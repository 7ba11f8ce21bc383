"""Who is found to make the others wait: from steps as ranks report them, and never from one look alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from core.host.watches.straggler import (
    ENOUGH,
    IN_A_ROW,
    DeviceConditions,
    Judgement,
    RankStep,
    Reason,
    Straggler,
    balance_gain,
    find_straggler,
    rank_step,
    straggler_reason,
)

TRANSFER_S = 0.01
NAMES = ["GPU 0", "GPU 1"]
LATE = Straggler((1,), 0.45, (0.45, 0.0), 0.1, (0.045, 0.09), (0.001, 0.001), (8.0, 8.0))


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


def reason_of(found: Straggler = LATE, *, can_balance: bool = True, is_balanced: bool = False, **here: Any) -> Reason:
    """With these things known of the late device."""
    return straggler_reason(found, NAMES, DeviceConditions(**here), can_balance=can_balance, is_balanced=is_balanced)


def test_a_slower_device_is_offered_load_balancing_with_what_it_brings() -> None:
    found = reason_of()
    assert found.kind == "slower"
    assert found.cause == "GPU 1 works 90 ms in each step, 45 ms more than the others."
    assert found.gain == pytest.approx(0.3375 - 0.05, abs=0.05)
    assert "--balance measured" in found.next_step and "with load balancing" in found.window_step
    assert "--" not in found.window_step


def test_what_load_balancing_brings_is_what_the_shares_come_to() -> None:
    # 16 samples at 178 and 89 a second: 11 and 5, of which the first takes 62 ms in place of 90.
    assert balance_gain(LATE) == pytest.approx((0.09 - 11 * 0.045 / 8) / 0.1)
    alone = replace(LATE, samples=(1.0, 1.0))
    assert balance_gain(alone) == 0.0, "one sample each cannot be shared out otherwise"
    assert balance_gain(replace(LATE, samples=(8.0, 0.0))) == 0.0


def test_load_balancing_is_not_offered_where_it_does_nothing() -> None:
    other_mode = reason_of(can_balance=False)
    assert other_mode.gain == 0 and "--balance" not in other_mode.next_step and "DDP" in other_mode.next_step
    on = reason_of(is_balanced=True)
    assert on.gain == 0 and "smaller micro-batch" in on.next_step
    few = reason_of(replace(LATE, samples=(1.0, 1.0)))
    assert few.gain == 0 and "larger global batch" in few.next_step


def test_loading_data_explains_it_where_it_is_half_of_what_is_more() -> None:
    found = reason_of(replace(LATE, data_s=(0.001, 0.041)))
    assert found.kind == "data" and "41 ms" in found.cause and "40 ms more" in found.cause
    assert "--balance" not in found.next_step, "fewer samples are not what is wrong"
    assert reason_of(replace(LATE, data_s=(0.001, 0.011))).kind == "slower"


def test_a_clock_that_is_held_down_says_why() -> None:
    hot = "hot: the driver lowers the clock"
    found = reason_of(throttled=(hot,), celsius=84.0, programs=("python (process 7)",))
    assert found.kind == "throttled" and hot in found.cause and "84 °C" in found.cause
    assert found.next_step.startswith("Check its cooling") and "--balance measured" in found.next_step


def test_other_programs_are_named() -> None:
    found = reason_of(programs=("blender (process 7)", "python (process 8)"))
    assert (found.kind, found.cause) == (
        "program",
        "blender (process 7) and python (process 8) use GPU 1 at the same time.",
    )


def test_more_samples_than_the_others_unless_they_were_given_by_speed() -> None:
    uneven = replace(LATE, samples=(1.0, 2.0))
    found = reason_of(uneven)
    assert (found.kind, found.gain) == ("samples", 0.0)
    assert found.cause == "GPU 1 trains 2 of the 3 samples of a batch."
    assert "--global-batch-size" in found.next_step and "--" not in found.window_step
    assert reason_of(uneven, is_balanced=True).kind == "slower"
    assert reason_of(replace(LATE, samples=(8.0, 10.0))).kind == "slower", "it is slower at each of them, too"
