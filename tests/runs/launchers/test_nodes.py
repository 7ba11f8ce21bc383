"""Runs on two machines under torchrun, which are network namespaces: the start, a failure, and what is lost."""

from __future__ import annotations

import json
import socket

import pytest

from core.cli.entry import main
from tests.helpers.host_fixture import FAILED, FINISHED, FakeRun, MakeRun
from tests.helpers.launched import train, wait
from tests.helpers.net_nodes import ADDRESSES, NO_NODES, NetNodes

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES)]


def _left(run: FakeRun) -> list[str]:
    folder = run.run_dir.parent / ".launched"
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_two_machines_train_one_run(make_run: MakeRun, nodes: NetNodes, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    run.behave(steps=60, step_s=0.05)
    jobs = [nodes.torchrun(0, train(run), processes=2), nodes.torchrun(1, train(run))]
    run.wait_for_step(3)
    assert any(address == ADDRESSES[0] for address, _ in nodes.listening(0)), "ranks of the other machine report there"
    assert "token" not in run.store.host_json.read_text(encoding="utf-8"), "other machines read this folder"
    assert [job.end() for job in jobs] == [0, 0], jobs[0].output + jobs[1].output
    state = run.end()
    assert (state.state, state.world_size, state.devices) == (FINISHED, 3, ("cpu:0", "cpu:1", "cpu:2"))
    assert state.nodes == (socket.gethostname(), socket.gethostname())
    assert run.steps(0)[-1] == run.steps(1)[-1] == run.steps(2)[-1] == 60
    environment = json.loads(run.store.environment.read_text(encoding="utf-8"))
    assert environment["distributed"]["num_nodes"] == 2
    assert "2 machines: " in jobs[0].output and jobs[0].output.count("Finished at step") == 1
    assert main(["show", str(run.run_dir), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert _left(run) == []


@pytest.mark.parametrize("number", [0, 1])
def test_torchrun_starts_both_machines_again(make_run: MakeRun, nodes: NetNodes, number: int) -> None:
    """A process of one machine is killed, then the run continues from its last checkpoint on both."""
    run = make_run()
    run.behave(steps=60, step_s=0.05, commit_every=5)
    for machine in range(2):
        nodes.torchrun(machine, train(run), "--max-restarts=2")
    run.wait_for_step(12)
    wait(run.checkpoints, "a checkpoint")
    nodes.kill(number, "python -u -m core train")
    assert [job.end() for job in nodes.jobs] == [0, 0], nodes.jobs[0].output + nodes.jobs[1].output
    assert run.end().state == FINISHED
    launches = run.events("launch")
    assert len(launches) == 2 and launches[1]["checkpoint"] is not None, "it continues from a checkpoint"
    resumed = set(launches[1]["resumed_from"].values())
    assert len(resumed) == 1 and run.steps(0, launches[1]["attempt"])[0] == resumed.pop() + 1
    assert run.steps(0)[-1] == run.steps(1)[-1] == 60


def test_a_lost_machine_ends_the_run_which_one_machine_can_resume(make_run: MakeRun, nodes: NetNodes) -> None:
    run = make_run()
    run.behave(steps=100_000, step_s=0.05, commit_every=5)
    jobs = [nodes.torchrun(number, train(run)) for number in range(2)]
    run.wait_for_step(12)
    nodes.kill(1)
    assert jobs[0].end() != 0
    state = run.end()
    assert state.state == FAILED and state.error is not None
    assert f"CPU 1 on {socket.gethostname()}" in state.error["title"]
    assert nodes.processes(0) == []
    run.behave(steps=run.steps(0)[-1] + 20)
    assert main(["resume", str(run.run_dir), "--devices", "cpu:0", "--yes"]) == 0
    assert run.end().state == FINISHED


def test_a_failure_is_reported_on_both_machines(make_run: MakeRun, nodes: NetNodes) -> None:
    run = make_run().fail_at(1, 5, "raise")
    jobs = [nodes.torchrun(number, train(run)) for number in range(2)]
    assert all(job.end() != 0 for job in jobs)
    state = run.end()
    assert state.state == FAILED and state.error is not None
    for job in jobs:
        for key in ("title", "cause", "next_step"):
            assert state.error[key] in job.output, job.output


def test_what_the_first_machine_refuses_ends_both(make_run: MakeRun, nodes: NetNodes) -> None:
    run = make_run()
    jobs = [nodes.torchrun(number, train(run, "--dataset-file", "nowhere.txt")) for number in range(2)]
    assert all(job.end() != 0 for job in jobs)
    assert all("The dataset is missing" in job.output for job in jobs), jobs[1].output
    assert _left(run) == [] and not run.store.state_json.exists()
