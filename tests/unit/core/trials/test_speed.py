"""Speed of all ranks together."""

from __future__ import annotations

import pytest

from core.config.mode import Mode
from core.trials.speed import samples_per_s, step_seconds
from tests.unit.core.tune.made import RUN, run


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
