"""Speeds of a contender's turns."""

from __future__ import annotations

import pytest

from core.bench.kinds import Kind
from tests.unit.core.bench.made import KILLED, WEAK, bench


def test_speeds_are_of_all_devices_together() -> None:
    found = bench(Kind.WEAK, WEAK)
    assert found.measured[0].speeds == pytest.approx([40, 20, 40])
    assert found.measured[1].speeds == pytest.approx([8 / 0.11, 8 / 0.21, 8 / 0.12])
    assert found.measured[1].steps_s == [0.11, 0.21, 0.12]
    assert found.base is found.measured[0] and found.has_figures


def test_without_the_fewest_devices_there_is_nothing_to_compare_with() -> None:
    found = bench(Kind.WEAK, {0: [KILLED], 1: WEAK[1]})
    assert found.base is None and found.has_figures
    assert not bench(Kind.WEAK, {0: [KILLED]}).has_figures
