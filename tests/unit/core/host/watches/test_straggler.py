"""Straggler watch: judged from steps as ranks report them, and never from one look alone."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from core.host.ranks import Ranks
from core.host.states import AttemptPhase
from core.host.watches.straggler import (
    ENOUGH,
    IN_A_ROW,
    LOOK_EVERY_S,
    RankStep,
    Reason,
    Straggler,
    StragglerWatch,
    find_straggler,
    rank_step,
    straggler_reason,
)
from tests.helpers.resolved_run import made_ranks

TRANSFER_S = 0.01
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
    two = find_straggler(made([[0.05, 0.09, 0.05, 0.089]] * ENOUGH))
    assert two is not None and two.ranks == (1, 3)


def test_the_transfer_is_nobody_s_wait() -> None:
    steps = [[RankStep(0.1, 0.08, 0.0, 4.0), RankStep(0.1, 0.081, 0.0, 4.0)]] * ENOUGH
    assert find_straggler(steps) is None


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


def test_a_step_line_as_ranks_write_it() -> None:
    line = {"event": "step", "step_time_s": 0.1, "sync_wait_s": 0.04, "data_wait_s": 0.0, "samples_per_s": 40.0}
    assert rank_step(line) == RankStep(0.1, 0.04, 0.0, 4.0)
    assert rank_step({**line, "sync_wait_s": 0.3}) == RankStep(0.1, 0.1, 0.0, 4.0), "no wait is longer than its step"
    for name in ("step_time_s", "sync_wait_s", "data_wait_s", "samples_per_s"):
        assert rank_step({**line, name: None}) is None, "a mode that does not measure it"
    assert rank_step({**line, "step_time_s": 0.0}) is None and rank_step({"step": 1}) is None


def reason_of(
    found: Straggler = LATE, held_down: str = "", *, can_balance: bool = True, is_balanced: bool = False
) -> Reason:
    return straggler_reason(found, "GPU 1", held_down, can_balance=can_balance, is_balanced=is_balanced)


def test_a_slower_device_is_offered_load_balancing_with_what_it_brings() -> None:
    found = reason_of()
    assert found.kind == "slower"
    assert found.cause == "GPU 1 works 90 ms in each step, 45 ms more than the others."
    # 16 samples at 178 and 89 a second: 11 and 5, of which the first takes 62 ms in place of 90.
    assert found.gain == pytest.approx((0.09 - 11 * 0.045 / 8) / 0.1)
    assert "--balance measured" in found.next_step and "with load balancing" in found.window_step
    assert "--" not in found.window_step


@pytest.mark.parametrize(
    ("found", "modes", "step"),
    [
        (LATE, {"can_balance": False}, "DDP"),
        (LATE, {"is_balanced": True}, "smaller micro-batch"),
        (replace(LATE, samples=(1.0, 1.0)), {}, "larger global batch"),
        (replace(LATE, samples=(8.0, 0.0)), {}, "larger global batch"),
    ],
)
def test_load_balancing_is_not_offered_where_it_does_nothing(
    found: Straggler, modes: dict[str, bool], step: str
) -> None:
    reason = reason_of(found, **modes)
    assert reason.gain == 0 and "--balance" not in reason.next_step and step in reason.next_step


def test_loading_data_explains_it_where_it_is_half_of_what_is_more() -> None:
    found = reason_of(replace(LATE, data_s=(0.001, 0.041)))
    assert found.kind == "data" and "41 ms" in found.cause and "40 ms more" in found.cause
    assert "--balance" not in found.next_step, "fewer samples are not what is wrong"
    assert reason_of(replace(LATE, data_s=(0.001, 0.011))).kind == "slower"


def test_a_clock_that_is_held_down_says_why() -> None:
    found = reason_of(held_down="hot: the driver lowers the clock, at 84 °C")
    assert found.kind == "throttled" and found.cause.endswith("the driver lowers the clock, at 84 °C).")
    assert found.next_step.startswith("Check its cooling") and "--balance measured" in found.next_step


class Story:
    """A run's ranks, which report steps on a clock that the test winds; `events` is what is said of them."""

    def __init__(self, ranks: Ranks) -> None:
        self.events: list[dict[str, Any]] = []
        services: Any = SimpleNamespace(stream=SimpleNamespace(emit=self._emit))
        self.watch = StragglerWatch(services, ranks)
        self._ranks = ranks
        self._step, self._now = 0, 100.0

    def _emit(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    def looks(self, number: int, works_ms: list[float], steps: int = 30, **changes: Any) -> list[str]:
        """So many looks at steps in which ranks work that long; the kinds of events so far."""
        for _ in range(number):
            for _ in range(steps):
                self._step += 1
                for rank, work_ms in zip(self._ranks, works_ms, strict=False):
                    self.watch.take(rank, [{**line(self._step, max(works_ms), work_ms), **changes}])
            self.watch.tick(self._now, AttemptPhase.TRAINING)
            self._now += LOOK_EVERY_S
            self.watch.tick(self._now, AttemptPhase.TRAINING)
        return [event["event"] for event in self.events]


def line(step: int, longest_ms: float, work_ms: float) -> dict[str, Any]:
    """As a rank writes it."""
    step_s, wait_s = (longest_ms + 1) / 1000, (longest_ms - work_ms + 1) / 1000
    values = {"step_time_s": step_s, "sync_wait_s": wait_s, "data_wait_s": 0.0, "samples_per_s": 8 / step_s}
    return {"event": "step", "step": step, **values}


def test_it_is_said_after_three_looks_and_again_when_it_is_over() -> None:
    story = Story(made_ranks("ddp", 2))
    assert story.looks(IN_A_ROW - 1, [50, 90]) == []
    assert story.looks(1, [50, 50]) == story.looks(IN_A_ROW - 1, [50, 90]) == [], "the three must be in a row"
    assert story.looks(1, [50, 90]) == ["straggler", "alert"]
    assert len(story.looks(2, [50, 50])) == 2
    assert len(story.looks(1, [82, 90])) == 2, "it is over only at a smaller loss than it began with"
    story.looks(IN_A_ROW, [50, 50])
    begun, alert, over = story.events
    assert begun["ranks"] == alert["ranks"] == [1] and begun["waits"] == {"0": pytest.approx(0.4396), "1": 0.0}
    assert begun["text"].replace("\N{NO-BREAK SPACE}", " ") == "CPU 0 waits 44 % of each step for CPU 1."
    assert alert["title"] == "CPU 1 slows down the other devices" and alert["cause"].startswith(begun["text"])
    assert alert["next_step"] and alert["window_step"] and alert["gain"] > 0
    assert (over["ranks"], over["text"]) == ([], "The other devices no longer wait for CPU 1.")


def test_another_device_takes_the_place_of_the_first() -> None:
    story = Story(made_ranks("ddp", 2))
    story.looks(IN_A_ROW, [50, 90])
    story.looks(IN_A_ROW, [90, 50])
    assert [event["ranks"] for event in story.events] == [[1], [1], [0], [0]]


def test_steps_that_not_all_ranks_have_reported_do_not_count() -> None:
    story = Story(made_ranks("ddp", 2))
    assert story.looks(5, [50]) == []
    assert story.looks(3, [50, 90]) == ["straggler", "alert"]


def test_slow_steps_are_collected_until_they_are_enough() -> None:
    story = Story(made_ranks("fsdp", 2))
    assert story.looks(8, [50, 90], steps=5) == [], "two looks at twenty steps"
    assert story.looks(4, [50, 90], steps=5) == ["straggler", "alert"]


@pytest.mark.parametrize(
    "ranks",
    [made_ranks("independent", 2), made_ranks("single", 1), made_ranks("ddp", 2, self_contained=True)],
    ids=["independent", "single", "a script"],
)
def test_of_ranks_that_do_not_train_in_step_nothing_is_said(ranks: Ranks) -> None:
    assert Story(ranks).looks(5, [50, 90][: len(ranks.all)]) == []


def test_a_mode_that_measures_no_waits_says_nothing() -> None:
    assert Story(made_ranks("zero", 2)).looks(5, [50, 90], sync_wait_s=None) == []
