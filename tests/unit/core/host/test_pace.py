"""How long a rank may be silent, by its own pace: on a clock that the test winds."""

from __future__ import annotations

import pytest

from core.host.pace import AWAY_S, ENOUGH, PATIENCE, AwakeClock, Pace


def paced(*pauses_s: float) -> tuple[Pace, float]:
    """A rank with a step after each pause, and the time of the last one."""
    pace, now = Pace(), 100.0
    pace.heard(now, is_step=True, was_busy=True)
    for pause_s in pauses_s:
        now += pause_s
        pace.heard(now, is_step=True, was_busy=False)
    return pace, now


def test_ten_typical_steps_and_a_minute_at_least() -> None:
    quick, slow = paced(*[0.1] * 20)[0], paced(*[9.0] * 20)[0]
    assert quick.typical_s == pytest.approx(0.1) and quick.limit_s(None, is_busy=False) == 60.0
    assert slow.typical_s == 9.0 and slow.limit_s(None, is_busy=False) == 90.0


def test_the_typical_step_is_a_median() -> None:
    assert paced(8.0, 8.0, 8.0, 40.0, 8.0)[0].limit_s(None, is_busy=False) == 80.0


def test_a_pause_that_was_survived_may_come_again_a_bit_longer() -> None:
    assert paced(1.0, 1.0, 90.0, 1.0, 1.0)[0].limit_s(None, is_busy=False) == 180.0


def test_before_there_are_enough_steps_nothing_is_late() -> None:
    assert paced(*[1.0] * (ENOUGH - 1))[0].limit_s(None, is_busy=False) is None
    assert paced(*[1.0] * ENOUGH)[0].limit_s(None, is_busy=False) == 60.0


def test_what_a_person_has_set_holds_from_the_first_step_on() -> None:
    assert paced()[0].limit_s(5.0, is_busy=False) == 5.0
    assert paced(90.0, 90.0, 90.0, 90.0)[0].limit_s(5.0, is_busy=False) == 5.0


def test_long_activities_may_last_longer_and_are_no_part_of_a_step() -> None:
    pace, now = paced(*[2.0] * 10)
    assert pace.limit_s(None, is_busy=True) == PATIENCE * 60.0
    for _ in range(10):
        pace.heard(now + 1.0, is_step=False, was_busy=False)  # "evaluating"
        now += 501.0
        pace.heard(now, is_step=True, was_busy=True)
    assert pace.typical_s == pytest.approx(1.5) and pace.longest_s == 2.0


def test_messages_between_two_steps_do_not_make_the_step_shorter() -> None:
    pace, now = paced()
    for _ in range(10):
        pace.heard(now + 1.0, is_step=False, was_busy=False)
        now += 20.0
        pace.heard(now, is_step=True, was_busy=False)
    assert pace.typical_s == 20.0


def test_a_rank_that_rests_is_not_silent() -> None:
    pace, now = paced(1.0, 1.0)
    pace.rest(now + 300.0)
    assert pace.silent_s(now + 310.0) == 10.0
    never = Pace()
    never.rest(5.0)
    assert never.silent_s(100.0) == 0.0


def test_the_clock_stands_while_the_computer_sleeps_and_while_nothing_is_listened_to() -> None:
    clock = AwakeClock()
    assert clock.read(1000.0) == 0.0
    assert clock.read(1002.0) == 2.0
    assert clock.read(1002.0 + 8 * 3600) == 2.0
    assert clock.read(1003.0 + 8 * 3600) == 3.0
    assert clock.read(1004.0 + 8 * 3600, counts=False) == 3.0
    assert clock.read(1004.0 + 8 * 3600 + AWAY_S) == 3.0 + AWAY_S == clock.now
