"""Places of steps in a schedule that is stretched or squeezed when a run resumes; `tests/training` has the rates."""

from __future__ import annotations

from typing import Any

import pytest

from workers.optim.lr_schedule import Schedule, saved_schedule

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

pytestmark = pytest.mark.windows
ASKED = (None, 2)


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
        schedule = schedule.resumed(Schedule.new(step + left, ASKED), step)
        assert min(schedule.length, schedule.place(step)) == pytest.approx(before)
        assert schedule.length == first and schedule.ends == step + left
        places = [schedule.place(at) for at in range(step, schedule.ends + 1)]
        assert places == sorted(places) and places[-1] == pytest.approx(first)


def test_the_same_plan_and_a_new_limit() -> None:
    schedule = Schedule.new(100, ASKED).resumed(Schedule.new(60, ASKED), 40)
    assert schedule == Schedule(60, 100.0, 40, 40.0, ASKED)
    assert schedule.resumed(Schedule.new(60, ASKED), 50) is schedule
    planned = Schedule.new(60, (60, None))
    assert schedule.resumed(planned, 50) is planned, "another limit lays out another schedule"


@pytest.mark.parametrize(
    ("asked", "left", "ends"), [((None, 2), 30, 70), ((60, None), 30, 60), ((90, None), 30, 70), ((), 0, 41)]
)
def test_an_expected_end_never_passes_the_limit(asked: tuple[int | None, ...], left: int, ends: int) -> None:
    schedule = Schedule.new(100, asked).expecting(40, left)
    assert (schedule.ends, schedule.from_step, schedule.from_place, schedule.length) == (ends, 40, 40.0, 100.0)
    assert schedule.place(ends) == pytest.approx(100.0)


def test_a_checkpoint_keeps_it() -> None:
    schedule = Schedule(60, 100.0, 40, 41.5, ASKED)
    values: dict[str, Any] = {**schedule.as_dict(), "asked": [None, 2]}  # JSON has no tuples
    assert saved_schedule(values) == schedule
    assert saved_schedule(None) is None
