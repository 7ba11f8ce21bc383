"""A script on several devices listens on this machine's loopback alone: its store, gloo, and all it starts."""

from __future__ import annotations

import sys
import time

import psutil
import pytest

from tests.helpers.host_fixture import FINISHED
from tests.helpers.script_runs import MakeScriptRun, ScriptRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch opens its store on all interfaces (docs)"),
]

TRAIN = """
    import os, sys, time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    for step in range(120):
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step == 10 and os.environ["TORCHELASTIC_RESTART_COUNT"] < sys.argv[1]: os._exit(3)
        time.sleep(0.1)
    dist.destroy_process_group()
"""


def listening(run: ScriptRun) -> set[str]:
    """Where the processes of a run's ranks listen."""
    found = set()
    for process in run.ranks():
        try:
            found |= {c.laddr.ip for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
        except psutil.NoSuchProcess:
            continue
    return found


def test_it_listens_on_loopback_alone_after_a_restart_too(script_run: MakeScriptRun) -> None:
    run = script_run(TRAIN, "1", max_restarts=1).start()
    seen: set[str] = set()
    deadline = time.monotonic() + 170
    while run.store.state().is_live and time.monotonic() < deadline:
        seen |= listening(run)
        time.sleep(1.0)  # sockets stay open as long as their process; looking at all processes is what takes long
    state = run.end()
    assert (state.state, state.attempt, state.error) == (FINISHED, 2, None), run.log()
    assert "127.0.0.1" in seen and seen <= {"127.0.0.1", "::1"}
    assert run.events("alert") == []  # nor that each trains a copy of its own, in twelve seconds
    run.assert_nothing_left()
