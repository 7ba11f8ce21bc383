"""How long a run on two machines stands still when something is lost: from the kill to the next step.

pytest -m benchmark -s tests/benchmarks/bench_node_faults.py

The machines are network namespaces with fake ranks, so the figures are those of noticing, ending and starting, without
PyTorch's import in a rank. They grow with the load, which is printed beside them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.helpers.host_fixture import FakeRun
from tests.helpers.launched import train, wait
from tests.helpers.net_nodes import NO_NODES, NetNodes

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES),
]


def test_seconds_without_a_step(tmp_path: Path, nodes: NetNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    run = FakeRun(tmp_path).behave(steps=10**6, step_s=0.05, commit_every=5)
    command = train(run)
    for number in range(2):
        nodes.start(number, command, nodes="1:2")
    print()
    try:
        run.wait_for_step(20)
        _measure("a rank", run, lambda: psutil.Process(_ranks_pid(run)).kill())
        _measure("a worker", run, lambda: nodes.kill(1, nodes.workers))
        _measure("an agent", run, lambda: nodes.kill(1, lambda n: nodes.processes(n, "torch.distributed.run")))
        _both_train(run)
        _measure("a machine", run, lambda: nodes.kill(1))
        _measure("its return", run, lambda: nodes.start(1, command, nodes="1:2"))
        _both_train(run)
        _measure("the network", run, lambda: nodes.plug(is_in=False))
        _measure("its return", run, lambda: nodes.plug(is_in=True))
        nodes.plug(is_in=False)
        nodes.kill(0)
        began = time.monotonic()
        assert nodes.jobs[-1].end() == 1
        _print("the host's machine", time.monotonic() - began, "until the other ends")
    finally:
        run.close()


def _measure(what: str, run: FakeRun, cause: Callable[[], object]) -> None:
    """Until an attempt after the present one has made a step."""
    before = run.events("launch")[-1]["attempt"]
    cause()
    began = time.time()

    def later() -> list[float]:
        return [line["ts"] for line in run.events("step") if line["attempt"] > before]

    wait(later, f"a step after {what}")
    _print(what, later()[0] - began, f"{run.events('launch')[-1]['world_size']} ranks")


def _print(what: str, seconds: float, about: str) -> None:
    print(f"| {what} | {seconds:.1f} s | {about} | load {os.getloadavg()[0]:.1f} |")


def _both_train(run: FakeRun) -> None:
    """Both machines do, and a checkpoint is saved."""
    wait(lambda: run.store.state().world_size == 2, "both machines")
    wait(lambda: run.store.state().state == "training", "training")
    run.wait_for_step(max([0, *run.steps()]) + 20)


def _ranks_pid(run: FakeRun) -> int:
    """Rank 1's process."""
    log = (run.store.logs / "host.log").read_text(encoding="utf-8")
    return int([line for line in log.splitlines() if "rank 1 is process" in line][-1].split(" process ")[1].split()[0])
