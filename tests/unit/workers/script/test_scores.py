"""What public programs print, read: each program's true steps and values against those that are charted."""

from __future__ import annotations

import pytest

from tests.unit.workers.script.scores import CHARTS, Program, programs, read, score

PROGRAMS = programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_read_as_it_was(name: str) -> None:
    one = score(PROGRAMS[name])
    assert (one.precision, one.recall) == (1.0, 1.0), one.wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_is_never_a_date_a_time_or_a_setting(name: str) -> None:
    program = PROGRAMS[name]
    steps = {step for points in program.charts.values() for step in points} | {0}
    if len(steps) > 1:
        learned = [point for point in read(program) if set(point.values) & set(CHARTS)]
        assert {point.step for point in learned} <= steps


def test_a_false_point_costs_precision_and_a_missing_one_recall() -> None:
    one = score(Program(b"step 1 loss 2\nstep 2 loss 7\n", {"loss": {1: 2.0, 2: 3.0, 3: 4.0}}))
    assert (one.expected, one.read, one.right, one.precision) == (3, 2, 1, 0.5)
    assert one.recall == pytest.approx(1 / 3) and one.wrong == ("loss 7 at 2 (epoch None)",)
