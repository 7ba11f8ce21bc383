"""A thread for calls that may hang."""

from __future__ import annotations

import itertools
import threading
import time

from core.machine.devices.driver_thread import DriverThread

LIMIT_S = 30.0


def soon() -> float:
    return time.monotonic() + LIMIT_S


def test_each_ask_brings_a_fresh_answer() -> None:
    answers = iter(range(10))
    thread = DriverThread("test-thread", lambda: next(answers))
    for expected in range(3):
        assert thread.wait(thread.ask(), soon())
        assert thread.latest == expected
    assert thread.silent_for_s == 0.0
    assert thread.close(soon())


def test_a_call_that_hangs_blocks_neither_its_caller_nor_another_lane() -> None:
    released = threading.Event()
    hanging = DriverThread("test-hanging", lambda: released.wait(LIMIT_S))
    healthy = DriverThread("test-healthy", lambda: "fine")
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
    thread = DriverThread("test-late", lambda: released.wait(LIMIT_S))
    ticket = thread.ask()
    assert not thread.wait(ticket, time.monotonic())
    released.set()
    assert thread.wait(ticket, soon())
    assert thread.latest is True
    assert thread.close(soon())


def test_a_failure_is_kept_and_does_not_end_the_lane() -> None:
    calls = itertools.count(1)

    def call() -> str:
        if next(calls) == 1:
            raise RuntimeError("driver in trouble")
        return "fine again"

    thread = DriverThread("test-failure", call)
    assert thread.wait(thread.ask(), soon())
    assert str(thread.failure) == "driver in trouble"
    assert thread.wait(thread.ask(), soon())
    assert thread.failure is None
    assert thread.latest == "fine again"
    assert thread.close(soon())
