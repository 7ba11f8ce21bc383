"""A disk that takes no more, made by the system's own limit on the size of files, lifted while the run goes on."""

from __future__ import annotations

import sys
import time

import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun, make_run

__all__ = ["make_run"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit on another process is Linux's")

FLOOD = 50


def limit_files(run: FakeRun, size_bytes: int | None) -> None:
    """From now on the host can make no file larger than this; None lifts the limit."""
    if sys.platform == "linux":
        import resource

        size = resource.RLIM_INFINITY if size_bytes is None else size_bytes
        resource.prlimit(run.host.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill_disk(run: FakeRun) -> None:
    """Lets the host write a little more and then nothing, and waits until it says so."""
    run.wait_for_step(3)
    limit_files(run, run.store.metrics.stat().st_size + 10_000)
    run.wait(lambda state: "could not be written" in state.phase)


def test_metrics_wait_for_space_and_nothing_is_lost(make_run: MakeRun) -> None:
    run = make_run().behave(steps=300, step_s=0.005, flood=FLOOD).start()
    fill_disk(run)
    time.sleep(1.2)  # long enough for a second refusal
    assert run.store.metrics.read_bytes().endswith(b"\n")  # no half line meanwhile
    limit_files(run, None)
    state = run.end()
    assert (state.state, state.exit_code, state.phase) == (FINISHED, 0, "")
    for rank in (0, 1):
        assert run.steps(rank) == list(range(1, 301))
        notes = [(line["step"], line["number"]) for line in run.events("note") if line["rank"] == rank]
        assert notes == [(step, number) for step in range(1, 301) for number in range(FLOOD)]
    (alert,) = run.events("alert")
    assert alert["title"] == "Metrics cannot be written"


def test_a_stop_while_the_disk_is_full_ends_within_bounds_and_says_what_is_lost(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.005, flood=FLOOD).start()
    fill_disk(run)
    began = time.monotonic()
    state = run.stop().end()
    assert time.monotonic() - began < 50.0  # 20 s for the stop, 10 for the lines, and a slow machine
    assert (state.state, state.exit_code) == (STOPPED, 1)
    assert state.error is not None and "lines of metrics could not be written" in state.error["cause"]
    assert run.generations()
