"""The learning rate of a run that resumes with more or fewer steps left."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="imports the update rule")

from workers.optim.lr_schedule import Schedule, saved_schedule
from workers.optim.optimizer import Optimization

ASKED = (None, 2)
RULE = Optimization(warmup_steps=10, min_lr_ratio=0.1)


def rates(schedule: Schedule, steps: range) -> list[float]:
    return [RULE.lr(schedule.place(step), schedule.length, 1.0) for step in steps]


def test_an_undisturbed_schedule_is_the_rule_itself() -> None:
    schedule = Schedule.new(100, ASKED)
    assert rates(schedule, range(1, 101)) == [RULE.lr(step, 100, 1.0) for step in range(1, 101)]
    assert schedule.resumed(Schedule.new(100, ASKED), 37) == schedule
    assert saved_schedule(schedule.as_dict()) == schedule


@pytest.mark.parametrize("ends", [60, 250])
def test_with_fewer_or_more_steps_left_the_rate_goes_on_from_where_it_stands(ends: int) -> None:
    before = Schedule.new(100, ASKED)
    after = before.resumed(Schedule.new(ends, ASKED), 40)
    old, new = rates(before, range(40, 41)), rates(after, range(40, ends + 1))
    assert new[0] == old[0], "no jump"
    assert new[-1] == pytest.approx(0.1), "and it ends where it was to end"
    assert new == sorted(new, reverse=True)
    assert after.ends == ends
    again = after.resumed(Schedule.new(ends, ASKED), 50)
    assert again == after, "what was changed once is not changed by a further resume"


def test_it_can_be_changed_again_and_again() -> None:
    schedule = Schedule.new(100, ASKED)
    last = None
    for step, ends in ((30, 70), (50, 90), (80, 82), (81, 400), (400, 400)):
        schedule = schedule.resumed(Schedule.new(ends, ASKED), step)
        rate = rates(schedule, range(step, step + 1))[0]
        assert last is None or rate <= last + 1e-12
        last = rate
    assert last == pytest.approx(0.1)


def test_the_warm_up_goes_on_too() -> None:
    after = Schedule.new(100, ASKED).resumed(Schedule.new(55, ASKED), 5)
    assert rates(after, range(5, 11)) == pytest.approx([0.5, 0.69, 0.88, 1.0, 1.0, 1.0], abs=0.02)


def test_a_new_limit_is_a_new_schedule() -> None:
    planned = Schedule.new(200, (200, None))
    assert Schedule.new(100, (100, None)).resumed(planned, 100) == planned


def test_nothing_left_is_no_division_by_nothing() -> None:
    schedule = Schedule.new(40, ASKED).resumed(Schedule.new(30, ASKED), 30)
    assert schedule.place(30) == pytest.approx(30.0)
