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
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch opens its store on all interfaces (docs)"),
]

TRAIN = """
    import os, sys, time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    for step in range(120):
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        if dist.get_rank() == 0: print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step == 50 and os.environ["TORCHELASTIC_RESTART_COUNT"] < sys.argv[1]: os._exit(3)
        time.sleep(0.02)
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
    deadline = time.monotonic() + 110
    while run.store.state().is_live and time.monotonic() < deadline:
        seen |= listening(run)
        time.sleep(0.3)  # sockets stay open as long as their process; looking at all processes is what takes long
    state = run.end()
    assert (state.state, state.attempt, state.error) == (FINISHED, 2, None), run.log()
    assert "127.0.0.1" in seen and seen <= {"127.0.0.1", "::1"}
    assert run.events("alert") == []
    run.assert_nothing_left()


def test_a_script_with_an_address_of_its_own_meets_there(script_run: MakeScriptRun) -> None:
    own = "os.environ['MASTER_PORT'] = str(int(os.environ['MASTER_PORT']) + 1); "
    run = script_run(TRAIN.replace("dist.init", own + "dist.init", 1).replace("120", "40"), "0").start()
    state = run.end()
    assert (state.state, state.error) == (FINISHED, None), run.log()
