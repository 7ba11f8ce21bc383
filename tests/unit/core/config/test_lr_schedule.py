"""The learning rate of a run that resumes with more or fewer steps left, or with another limit."""

from __future__ import annotations

from typing import Any

import pytest

from core.config.lr_schedule import CONTINUE, DECAY, REPLAN, RESTART, Schedule, cosine, saved_schedule

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")
ASKED = (None, 2)
WARMUP, FLOOR = 10, 0.1


def curve(place: float, length: float, warms_up: bool) -> float:
    return cosine(place, length, WARMUP if warms_up else 0, FLOOR, 1.0)


def rates(schedule: Schedule, steps: range) -> list[float]:
    return [schedule.share(step, curve) for step in steps]


def test_a_new_schedule_has_one_place_a_step() -> None:
    schedule = Schedule.new(100, [50, None])
    assert [schedule.place(step) for step in (0, 1, 37, 100, 120)] == [0, 1, 37, 100, 120]
    assert (schedule.length, schedule.asked) == (100.0, (50, None))


@hypothesis.given(st.integers(1, 300), st.lists(st.tuples(st.integers(1, 60), st.integers(1, 300)), max_size=4))
def test_each_resume_continues_from_its_place_and_ends_at_the_end(first: int, resumes: list[tuple[int, int]]) -> None:
    schedule, step = Schedule.new(first, ASKED), 0
    for done, left in resumes:
        step += done
        before = min(schedule.length, schedule.place(step))
        schedule = schedule.resumed(Schedule.new(step + left, ASKED), step, curve)
        assert min(schedule.length, schedule.place(step)) == pytest.approx(before)
        assert schedule.length == first and schedule.ends == step + left
        places = [schedule.place(at) for at in range(step, schedule.ends + 1)]
        assert places == sorted(places) and places[-1] == pytest.approx(first)


def test_an_undisturbed_schedule_is_the_rule_itself() -> None:
    schedule = Schedule.new(100, ASKED)
    assert rates(schedule, range(1, 101)) == [curve(step, 100, True) for step in range(1, 101)]
    assert schedule.resumed(Schedule.new(100, ASKED), 37, curve) == schedule
    assert saved_schedule(schedule.as_dict()) == schedule


@pytest.mark.parametrize("ends", [60, 250])
@pytest.mark.parametrize("asked", [ASKED, (None, 3), (250, None)])
def test_the_rate_continues_and_ends_at_the_end(ends: int, asked: tuple[int | None, ...]) -> None:
    before = Schedule.new(100, ASKED)
    after = before.resumed(Schedule.new(ends, asked), 40, curve)
    old, new = rates(before, range(40, 41)), rates(after, range(40, ends + 1))
    assert new[0] == old[0], "no jump"
    assert new[-1] == pytest.approx(FLOOR), "and it ends where it was to end"
    assert new == sorted(new, reverse=True)
    assert after.ends == ends and after.asked == asked
    again = after.resumed(Schedule.new(ends, asked), 50, curve)
    assert again == after, "what was changed once is not changed by a further resume"


def test_a_finished_run_stays_at_its_last_rate() -> None:
    schedule = Schedule.new(40, (40, None))
    for done, ends in ((40, 80), (80, 200), (200, 210)):
        schedule = schedule.resumed(Schedule.new(ends, (ends, None)), done, curve)
        assert rates(schedule, range(done, ends + 1)) == pytest.approx([FLOOR] * (ends + 1 - done))


def test_a_new_decay_begins_at_the_present_rate() -> None:
    done = Schedule.new(40, (40, None))
    after = done.resumed(Schedule.new(80, (80, None), DECAY), 40, curve)
    new = rates(after, range(40, 81))
    assert new[0] == pytest.approx(FLOOR) and new[-1] == pytest.approx(FLOOR * FLOOR)
    assert new == sorted(new, reverse=True) and new[1] > 0.99 * FLOOR, "and it is not warmed up"
    assert after.resumed(Schedule.new(80, (80, None), DECAY), 60, curve) == after
    twice = after.resumed(Schedule.new(120, (120, None), DECAY), 80, curve)
    assert twice.share(80, curve) == pytest.approx(FLOOR * FLOOR)


def test_the_schedule_can_be_laid_out_again() -> None:
    done = Schedule.new(40, (40, None))
    planned = Schedule.new(80, (80, None), REPLAN)
    assert done.resumed(planned, 40, curve) is planned
    anew = done.resumed(Schedule.new(80, (80, None), RESTART), 40, curve)
    assert anew.share(41, curve) == pytest.approx(1 / WARMUP) and anew.share(50, curve) == 1.0
    assert anew.share(80, curve) == pytest.approx(FLOOR)
    later = anew.resumed(Schedule.new(160, (160, None)), 60, curve)
    assert later.share(60, curve) == anew.share(60, curve), "the next limit continues again unless it says otherwise"
    assert later.choice == CONTINUE


def test_a_choice_alone_changes_the_rest() -> None:
    held = Schedule.new(40, (40, None)).resumed(Schedule.new(80, (80, None)), 40, curve)
    again = held.resumed(Schedule.new(80, (80, None), REPLAN), 60, curve)
    assert again.share(60, curve) == curve(60, 80, True) > held.share(60, curve)


def test_within_the_warm_up_more_steps_do_not_make_it_longer() -> None:
    planned = Schedule.new(1000, (1000, None))
    assert Schedule.new(100, (100, None)).resumed(planned, 5, curve) is planned


def test_other_ranks_stretch_the_warm_up_too() -> None:
    after = Schedule.new(100, ASKED).resumed(Schedule.new(55, ASKED), 5, curve)
    assert rates(after, range(5, 11)) == pytest.approx([0.5, 0.69, 0.88, 1.0, 1.0, 1.0], abs=0.02)


def test_nothing_left_is_no_division_by_nothing() -> None:
    schedule = Schedule.new(40, ASKED).resumed(Schedule.new(30, ASKED), 30, curve)
    assert schedule.place(30) == pytest.approx(30.0)


def test_a_checkpoint_keeps_it() -> None:
    schedule = Schedule(60, 100.0, 40, 41.5, ASKED)
    values: dict[str, Any] = {**schedule.as_dict(), "asked": [None, 2]}  # JSON has no tuples
    assert saved_schedule(values) == schedule
    assert saved_schedule(None) is None
