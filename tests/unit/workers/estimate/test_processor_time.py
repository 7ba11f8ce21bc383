"""Processor time of short work, by exact clocks and by those that tick."""

from __future__ import annotations

import time

import pytest

from workers.estimate import processor_time
from workers.estimate.processor_time import ProcessorTimer

pytestmark = pytest.mark.windows


def compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def test_work_that_is_shorter_than_a_tick_takes_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate divides by it."""
    monkeypatch.setattr(processor_time, "TICK_S", 1 / 64)
    monkeypatch.setattr(time, "process_time", lambda: 3.0)  # it did not tick meanwhile
    timer = ProcessorTimer(2)
    compute(0.004)
    assert timer.seconds() >= 0.004


def test_long_work_is_shared_by_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_time, "TICK_S", 1 / 64)
    times = iter((3.0, 3.5))
    monkeypatch.setattr(time, "process_time", lambda: next(times))
    assert ProcessorTimer(2).seconds() == 0.25


def test_an_exact_clock_is_believed_however_short_the_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_time, "TICK_S", 0.0)
    times = iter((3.0, 3.001))
    monkeypatch.setattr(time, "process_time", lambda: next(times))
    assert ProcessorTimer(1).seconds() == pytest.approx(0.001)
