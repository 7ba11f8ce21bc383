"""A run beside a program that computes on one rank's core: is that device named, with the program?

    pytest -m benchmark -s tests/benchmarks/bench_competition.py

Not in the suite: what else its machine does evens out what two ranks have, and then no device is slower. Needs Linux,
two cores, and root, which may put the rank and the program before all others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.helpers.hosted_run import lines, processes
from tests.training.end2end.test_stragglers import make_unequal, stopped_after

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

BUSY_PROGRAM = """
import time
while True:
    end = time.monotonic() + 0.06
    while time.monotonic() < end:
        pass
    time.sleep(0.03)
"""


@contextmanager
def busy_program(core: int) -> Iterator[int]:
    """A program that computes on one core for two thirds of the time, before all others."""

    def take_core() -> None:
        os.sched_setaffinity(0, {core})
        put_first(0)

    with subprocess.Popen([sys.executable, "-c", BUSY_PROGRAM], preexec_fn=take_core) as program:
        try:
            yield program.pid
        finally:
            program.kill()


def put_first(thread: int) -> None:
    """Lets a thread run before all others: what else this machine does must not count in a test."""
    os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(1))


def may_put_first() -> bool:
    try:
        put_first(0)
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def threads(pid: int) -> list[int]:
    return [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are pinned to cores as Linux does it")
def test_a_device_beside_another_program_is_named_with_it(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("each rank needs a core of its own")
    if not may_put_first():
        pytest.skip("only root may put a program first, and beside other tests nothing else is certain")
    store = make_unequal(tmp_path / "run", "ddp", {"n_embd": 96}, batch_size=16)
    with ExitStack() as beside:
        pids = list[int]()

        def is_named() -> bool:
            if not pids and any(line["step"] >= 20 for line in lines(store, "step")):
                ranks = processes(store)
                for rank in (0, 1):
                    for thread in threads(ranks[rank].pid):
                        os.sched_setaffinity(thread, {cores[rank]})
                for thread in threads(ranks[0].pid):
                    put_first(thread)
                pids.append(beside.enter_context(busy_program(cores[1])))
            return any(line["reason"] == "program" for line in lines(store, "alert") if line["kind"] == "straggler")

        stopped_after(store, is_named)
    alert = next(line for line in lines(store, "alert") if line["kind"] == "straggler" and line["reason"] == "program")
    assert alert["ranks"] == [1] and alert["lost"] > 0.1
    assert f"(process {pids[0]})" in alert["cause"], alert["cause"]
    assert "Close other programs" in alert["next_step"]
    print(f"step {alert['step']}: {alert['cause']} {alert['next_step']}")
