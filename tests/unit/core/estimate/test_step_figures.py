"""Seconds of a step on one device, against values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config.batch import Batch
from tests.unit.core.estimate.made import SHARED


def test_a_step_grows_with_its_samples() -> None:
    assert SHARED.step_s(Batch.of(8, 2, 1)) == pytest.approx(1.18)
    assert SHARED.step_s(Batch.of(4, 2, 3)) == pytest.approx(1.72)  # 12 samples of 0.135 s, and the update
    assert SHARED.step_s(Batch.of(8, 2, 1), 0.5) == pytest.approx(1.13)
    assert replace(SHARED, prepare_s=0.1).step_s(Batch.of(8, 2, 1)) == pytest.approx(1.98)
