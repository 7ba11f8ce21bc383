"""A thread for calls that may hang."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from core.machine.devices.driver_thread import Lane

pytestmark = pytest.mark.windows

LIMIT_S = 30.0


def soon() -> float:
    return time.monotonic() + LIMIT_S


def test_each_ask_brings_a_fresh_answer() -> None:
    answers = iter(range(10))
    lane = Lane("test-lane", lambda: next(answers))
    for expected in range(3):
        assert lane.wait(lane.ask(), soon())
        assert lane.latest == expected
    assert lane.silent_for_s == 0.0
    assert lane.close(soon())


def test_a_call_that_hangs_blocks_neither_its_caller_nor_another_lane() -> None:
    released = threading.Event()
    hanging = Lane("test-hanging", lambda: released.wait(LIMIT_S))
    healthy = Lane("test-healthy", lambda: "fine")
    ticket = hanging.ask()
    assert not hanging.wait(ticket, time.monotonic())
    assert hanging.ask() == ticket  # no second call while one is under way
    assert healthy.wait(healthy.ask(), soon())
    assert hanging.latest is None
    while hanging.silent_for_s == 0.0:
        time.sleep(0.005)  # the clock of Windows ticks every 16 ms
    assert not hanging.close(time.monotonic())
    released.set()
    assert hanging.close(soon())
    assert healthy.close(soon())


def test_an_answer_that_comes_late_is_kept() -> None:
    released = threading.Event()
    lane = Lane("test-late", lambda: released.wait(LIMIT_S))
    ticket = lane.ask()
    assert not lane.wait(ticket, time.monotonic())
    released.set()
    assert lane.wait(ticket, soon())
    assert lane.latest is True
    assert lane.close(soon())


def test_a_failure_is_kept_and_does_not_end_the_lane() -> None:
    calls = itertools.count(1)

    def call() -> str:
        if next(calls) == 1:
            raise RuntimeError("driver in trouble")
        return "fine again"

    lane = Lane("test-failure", call)
    assert lane.wait(lane.ask(), soon())
    assert str(lane.failure) == "driver in trouble"
    assert lane.wait(lane.ask(), soon())
    assert lane.failure is None
    assert lane.latest == "fine again"
    assert lane.close(soon())
