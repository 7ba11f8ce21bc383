"""A disk that takes no more, made by the system's own limit on the size of files, lifted while the run goes on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit on another process is Linux's")

FLOOD = 50
ROOT = Path(__file__).resolve().parents[3]


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
    run.wait(lambda _state: run.store.metrics.read_bytes().endswith(b"\n"))  # half a line is cut off again
    limit_files(run, None)
    state = run.end()
    assert (state.state, state.exit_code, state.phase) == (FINISHED, 0, "")
    for rank in (0, 1):
        assert run.steps(rank) == list(range(1, 301))
        notes = [(line["step"], line["number"]) for line in run.events("note") if line["rank"] == rank]
        assert notes == [(step, number) for step in range(1, 301) for number in range(FLOOD)]
    (alert,) = run.events("alert")
    assert alert["title"] == "Metrics cannot be written"


def test_a_full_disk_is_told_to_whoever_watches_at_once(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.005, flood=FLOOD).start()
    run.wait_for_step(3)
    command = [sys.executable, "-m", "core", "attach", str(run.run_dir)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8") as attached:
        assert attached.stdout is not None
        lines = Lines(attached.stdout)
        try:
            lines.wait_for("step ")
            limit_files(run, 1)  # state.json cannot be replaced either
            lines.wait_for("Alert: Metrics cannot be written.")
            text = lines.wait_for("Metrics cannot be written · training, step")
            assert "left" not in text and "tok/s" not in text
            limit_files(run, None)
            lines.wait_for("There is disk space again")
            run.wait_for_event("alert")
            run.stop().end()
            attached.wait(30.0)
        finally:
            attached.kill()
        assert sum("Alert: Metrics cannot" in line for line in lines.all) == 1


class Lines:
    """What a process prints, read by a thread."""

    def __init__(self, stream: IO[str]) -> None:
        self.all: list[str] = []
        self._thread = threading.Thread(target=lambda: self.all.extend(stream), daemon=True)
        self._thread.start()

    def wait_for(self, text: str) -> str:
        """The first line that holds it."""
        deadline = time.monotonic() + 90.0
        while time.monotonic() < deadline:
            found = next((line for line in list(self.all) if text in line), None)
            if found is not None:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{text!r} was not printed: {self.all}")


def test_a_stop_while_the_disk_is_full_ends_within_bounds_and_says_what_is_lost(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.005, flood=FLOOD).start()
    fill_disk(run)
    began = time.monotonic()
    state = run.stop().end()
    assert time.monotonic() - began < 50.0  # 20 s for the stop, 10 for the lines, and a slow machine
    assert (state.state, state.exit_code) == (STOPPED, 1)
    assert state.error is not None and "lines of metrics could not be written" in state.error["cause"]
    assert run.checkpoints()
