"""Ranks of a script that never made a process group are told of; those that are connected, however, are not.

`test_script_listens` has those that are connected in the usual way.
"""

from __future__ import annotations

import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED
from tests.helpers.script_runs import MakeScriptRun

STEPS = """
    import os, time
    def train(steps):
        for step in range(steps):
            print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
            time.sleep(0.1)
"""
GROUPS = {
    "env:// at its own address": "os.environ['MASTER_PORT'] = str(port); dist.init_process_group('gloo')",
    "file://": "dist.init_process_group('gloo', init_method=meet, rank=rank, world_size=2)",
    # PyTorch for Windows has no libuv
    "its own rendezvous port": "store = dist.TCPStore('127.0.0.1', port, 2, rank == 0, use_libuv=False); "
    "dist.init_process_group('gloo', store=store, rank=rank, world_size=2)",
}


def test_ranks_that_train_copies_of_their_own_are_told(script_run: MakeScriptRun) -> None:
    run = script_run(STEPS + "    train(10_000)\n").start()
    (alert,) = run.wait_for_event("alert")
    assert (alert["kind"], alert["title"]) == ("own_copies", "Each process trains its own copy")
    assert "init_process_group" in alert["next_step"]
    assert run.stop().end().state == STOPPED
    assert len(run.events("alert")) == 1


@pytest.mark.windows
@pytest.mark.parametrize(("mode", "devices"), [("independent", ("cpu:2",)), ("auto", ("cpu:1",))])
def test_copies_that_were_asked_for_are_not(script_run: MakeScriptRun, mode: str, devices: tuple[str, ...]) -> None:
    run = script_run(STEPS + "    train(120)\n", mode=mode, devices=devices).start()
    assert run.end().state == FINISHED and run.events("alert") == []


@pytest.mark.second_tier
@pytest.mark.slow
@pytest.mark.parametrize("how", GROUPS)
def test_ranks_with_a_process_group_are_not(script_run: MakeScriptRun, how: str) -> None:
    text = f"""
    import torch.distributed as dist
    # Below the ports that the system gives to connections: the one after MASTER_PORT may be in use.
    rank, port = int(os.environ["RANK"]), 20_000 + int(os.environ["MASTER_PORT"]) % 10_000
    # Not in the script's own folder: PyTorch for Windows opens no store below letters outside ASCII.
    meet = "file://" + "/" * (os.name == "nt") + os.path.dirname(os.getcwd()).replace(os.sep, "/") + "/meet"
    {GROUPS[how]}
    train(120)
    dist.barrier()
    dist.destroy_process_group()
    """
    run = script_run(STEPS + text).start()
    state = run.end()
    assert (state.state, state.error, run.events("alert")) == (FINISHED, None, [])
    assert run.steps(0) and run.steps(1)
