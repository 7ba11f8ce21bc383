"""Runs on two machines, which are network namespaces: the start, refusals, and what is lost and comes back."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from core.cli.entry import main
from tests.helpers.host_fixture import FINISHED, FakeRun, MakeRun
from tests.helpers.launched import ROOT, train, wait
from tests.helpers.net_nodes import ADDRESSES, NO_NODES, PORT, NetNodes

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES)]
PAUSE_S = 4.5


def test_two_machines_train_one_run_and_listen_on_the_named_interface_alone(
    make_run: MakeRun, nodes: NetNodes, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    run.behave(steps=100, step_s=0.05)
    command = train(run)
    is_protected = shutil.which("nft") is not None
    if is_protected:
        nodes.protect(_firewall_lines())
    jobs = [nodes.start(0, command, "--devices", "cpux2"), nodes.start(1, command)]
    run.wait_for_step(3)
    ports = [PORT, PORT + 1, PORT + 2, PORT + 3]
    assert nodes.reachable(ports, 1) == ports
    assert nodes.reachable(ports) == ([] if is_protected else ports), "closed to others by the lines in docs/nodes.md"
    listening = nodes.listening(0)
    ours = {(address, port) for address, port in listening if port != PORT}
    assert {address for address, _ in ours} <= {"127.0.0.1", ADDRESSES[0]}, "only torchrun's store listens elsewhere"
    assert {port for address, port in ours if address == ADDRESSES[0]} >= {PORT + 1, PORT + 2, PORT + 3}
    assert not any(address == "0.0.0.0" for address, _ in nodes.listening(1))
    for number in range(2):
        words = " ".join(word for process in nodes.processes(number) for word in process.cmdline())
        assert "1" * 64 not in words
    assert [job.end() for job in jobs] == [0, 0], jobs[0].output + jobs[1].output
    state = run.end()
    assert (state.state, state.world_size, state.devices) == (FINISHED, 3, ("cpu:0", "cpu:1", "cpu:2"))
    assert run.steps(0)[-1] == run.steps(1)[-1] == run.steps(2)[-1] == 100
    environment = json.loads(run.store.environment.read_text(encoding="utf-8"))
    assert environment["distributed"]["num_nodes"] == 2
    assert "&& rankdeck train" in jobs[0].output
    assert "2 of 2 nodes are here" in jobs[0].output
    assert main(["show", str(run.run_dir), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"


def _firewall_lines() -> list[str]:
    text = (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8")
    lines = [line.replace("10.0.0.0/24", "10.77.0.0/24") for line in text.splitlines() if line.startswith("nft add")]
    assert len(lines) == 7
    return lines


def _start_both(make_run: MakeRun, nodes: NetNodes, asked: str = "1:2") -> FakeRun:
    run = make_run()
    run.behave(steps=100_000, step_s=0.05, commit_every=5)
    command = train(run)
    for number in range(2):
        nodes.start(number, command, nodes=asked)
    run.wait_for_step(3)
    wait(run.checkpoints, "a checkpoint")
    return run


def _wait_for_attempt(run: FakeRun, attempt: int) -> None:
    wait(lambda: run.steps(0, attempt), f"attempt {attempt}")


def _check_continues(run: FakeRun) -> None:
    """Each attempt goes on where the checkpoint before it stands, and no chunk is trained twice in the weights."""
    launches = run.events("launch")
    for launch in launches[1:]:
        resumed = set(launch["resumed_from"].values())
        assert len(resumed) == 1 and run.steps(0, launch["attempt"])[0] == resumed.pop() + 1
    ledger = run.ledger()
    assert ledger is not None


def test_what_a_machine_loses_costs_the_steps_since_the_last_checkpoint(make_run: MakeRun, nodes: NetNodes) -> None:
    """kill -9 of a worker, of an agent, of a whole machine, and its return; one run, so that it costs one start."""
    run = _start_both(make_run, nodes, "2")
    with _watched(run) as states:
        _lose_and_return(run, nodes)
    assert states <= {"starting", "training", "stopping"}, "between two hosts it has neither failed nor stopped"
    assert len(run.events("restart")) == 3 and not run.events("failed") and not run.events("finished")
    assert nodes.run(0, "stop", str(run.run_dir)) == 0
    assert [nodes.jobs[0].end(), nodes.jobs[2].end()] == [0, 0], nodes.jobs[0].output
    assert run.end().state == "stopped"
    run.behave(steps=run.steps(0)[-1] + 20)
    assert main(["resume", str(run.run_dir), "--devices", "cpu:0", "--yes"]) == 0
    assert run.end().state == FINISHED


@contextlib.contextmanager
def _watched(run: FakeRun) -> Iterator[set[str]]:
    """The states that a reader of the run's folder sees meanwhile."""
    seen: set[str] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            seen.add(run.store.state().state)

    thread = threading.Thread(target=look)
    thread.start()
    yield seen
    is_over.set()
    thread.join()


def _lose_and_return(run: FakeRun, nodes: NetNodes) -> None:
    assert "token" not in run.store.host_json.read_text(encoding="utf-8"), "other machines read this folder"
    assert nodes.run(1, "stop", str(run.run_dir)) == 1 and not run.events("stop_requested")
    nodes.kill(1, nodes.workers)
    _wait_for_attempt(run, 2)
    assert run.events("launch")[-1]["world_size"] == 2, "a machine with a living agent stays"

    nodes.kill(1)
    _wait_for_attempt(run, 3)
    assert run.store.state().world_size == 1
    [alert] = [line for line in run.events("alert") if line["kind"] == "node_lost"]
    assert alert["title"] == "A machine was lost" and "does not answer any more" in alert["cause"]
    alerts = [line for line in run.events("alert") if line["kind"] == "fewer_devices"]
    assert len(alerts) == 1 and "The global batch is 4 samples" in alerts[0]["cause"], "2 × 2 × 1 before"
    assert "A node is lost" in nodes.jobs[0].output

    nodes.start(1, train(run), nodes="2")
    _wait_for_attempt(run, 4)
    assert run.store.state().world_size == 2
    assert len(run.store.state().nodes) == 2 and run.events("node_returned")[0]["title"] == "A machine has joined"
    _check_continues(run)


def test_a_rank_killed_now_and_then_ends_no_run_and_one_that_crashes_at_each_start_does(
    make_run: MakeRun, nodes: NetNodes
) -> None:
    """One run for both, since starting it takes the time."""
    run = _start_both(make_run, nodes)
    for number in range(1, 6):
        _kill_a_rank(run, number % 2)
        _wait_for_attempt(run, number + 1)
        run.wait_for_step(max(run.steps()) + 10)
    restarts = run.events("restart")
    assert [line["number"] for line in restarts] == [1] * 5, "each came after new steps"
    crash = max(run.steps()) + 60
    run.behave(1, fail_at=crash, fail_how="exit:3")
    _kill_a_rank(run, 0)
    assert [job.end() for job in nodes.jobs] == [1, 1], nodes.jobs[0].output
    state = run.end()
    assert state.state == "failed" and state.error is not None
    assert state.error["title"] == "The run crashed 4 times without a new step"
    assert f"CPU 1 on {socket.gethostname()}" in state.error["cause"] and "exit code 3" in state.error["cause"]
    assert "Look at logs/rank1.log" in state.error["next_step"]
    for job in nodes.jobs:
        for key in ("title", "cause", "next_step"):
            assert state.error[key] in job.output
    assert [line["number"] for line in run.events("restart")] == [*[1] * 7, 2, 3]
    assert max(run.steps(1)) == crash
    _check_continues(run)
    assert "started again" not in nodes.jobs[0].output and len(run.events("failed")) == 1, "the agents did nothing"
    assert nodes.processes(0) == nodes.processes(1) == []


@pytest.mark.parametrize(("place", "title"), [("start", "The process on CPU"), (1, "The run crashed 4 times")])
def test_ranks_that_crash_at_once_end_the_run_on_both_machines(
    make_run: MakeRun, nodes: NetNodes, place: str | int, title: str
) -> None:
    """Before the first step the host tries what it tries on one machine; after it, what is tried again ends too."""
    run = make_run()
    run.behave(steps=1000, fail_at=place)
    jobs = [nodes.start(number, train(run)) for number in range(2)]
    assert [job.end() for job in jobs] == [1, 1], jobs[0].output + jobs[1].output
    state = run.end()
    assert state.state == "failed" and state.error is not None and state.error["title"].startswith(title)
    assert "killed" in state.error["cause"]
    for job in jobs:
        for key in ("title", "cause", "next_step"):
            assert state.error[key] in job.output
    assert len(run.events("launch")) == 4 and len(run.events("failed")) == 1
    assert nodes.processes(0) == nodes.processes(1) == []


def test_a_rank_that_hangs_is_no_loss_and_the_policy_ends_the_run(make_run: MakeRun, nodes: NetNodes) -> None:
    run = make_run(hang_policy="stop", hang_timeout_s=3.0)
    run.behave(steps=1000, step_s=0.05, commit_every=5).hang_at(1, 12)
    jobs = [nodes.start(number, train(run)) for number in range(2)]
    assert [job.end() for job in jobs] == [1, 1], jobs[0].output + jobs[1].output
    state = run.end()
    assert state.state == "failed" and state.error is not None
    assert all(state.error["title"] in job.output for job in jobs)
    assert len(run.events("launch")) == 1 and not run.events("restart"), "what the alert says: the run ends now"


def _kill_a_rank(run: FakeRun, number: int) -> None:
    """kill -9, as the system's out-of-memory killer does."""
    log = (run.store.logs / "host.log").read_text(encoding="utf-8")
    pid = int(re.findall(rf"rank {number} is process (\d+)", log)[-1])
    psutil.Process(pid).kill()


def test_a_cut_network_takes_a_machine_out_and_it_comes_back_by_itself(make_run: MakeRun, nodes: NetNodes) -> None:
    run = _start_both(make_run, nodes)
    with nodes.paused(1):
        time.sleep(PAUSE_S)
    run.wait_for_step(run.store.state().step + 20)
    assert len(run.events("launch")) == 1, "a short pause is no loss"
    nodes.plug(is_in=False)
    _wait_for_attempt(run, 2)
    assert run.store.state().world_size == 1
    assert [launch["world_size"] for launch in run.events("launch")] == [2, 1] and run.events("alert")
    nodes.plug(is_in=True)
    wait(lambda: run.store.state().world_size == 2, "the machine")
    _wait_for_attempt(run, 3)
    _check_continues(run)


def test_without_the_hosts_machine_the_others_end_and_the_run_can_be_resumed(
    make_run: MakeRun, nodes: NetNodes
) -> None:
    run = _start_both(make_run, nodes)
    nodes.plug(is_in=False)  # first: a machine without power sends nothing that ends a connection
    nodes.kill(0)
    assert nodes.jobs[1].end() == 1
    assert "The machine with the run's host is missing" in nodes.jobs[1].output
    assert nodes.processes(1) == []
    nodes.plug(is_in=True)
    run.behave(steps=run.steps(0)[-1] + 20)
    again = ["-m", "core", "resume", str(run.run_dir), "--yes"]
    jobs = [nodes.start(number, again) for number in range(2)]
    assert [job.end() for job in jobs] == [0, 0], jobs[0].output
    state = run.end()
    assert (state.state, state.world_size) == (FINISHED, 2)
    _check_continues(run)


def test_a_run_that_needs_all_machines_waits_for_a_lost_one_and_gives_up_in_the_end(
    make_run: MakeRun, nodes: NetNodes
) -> None:
    run = make_run()
    run.behave(steps=100_000, step_s=0.05, commit_every=5)
    command = [*train(run), "--nodes-wait-s", "15"]
    for number in range(2):
        nodes.start(number, command, nodes="2:2")
    wait(run.checkpoints, "a checkpoint")
    nodes.kill(1)
    wait(lambda: run.store.state().phase.startswith("waiting for"), "the wait")
    name = socket.gethostname()
    state = run.store.state()
    assert state.is_live and state.phase == f"waiting for {name}" and state.trouble is not None
    assert f"It waits for {name} up to 15 s" in state.trouble["cause"]
    assert f"It waits for {name} up to 15 s" in nodes.jobs[0].output
    nodes.start(1, command, nodes="2:2")
    _wait_for_attempt(run, 2)
    assert run.store.state().world_size == 2 and run.store.state().trouble is None
    _check_continues(run)

    nodes.kill(1)
    assert nodes.jobs[0].end() == 1
    state = run.store.state()
    assert state.state == "failed" and state.error is not None
    assert state.error["title"] == "A machine did not come back"
    for key in ("title", "cause", "next_step"):
        assert state.error[key] in nodes.jobs[0].output
    assert nodes.processes(0) == []
    assert not any(line["attempt"] == 3 for line in run.lines())


def test_a_machine_with_another_key_is_refused_on_both_and_a_missing_one_is_named(
    make_run: MakeRun, nodes: NetNodes
) -> None:
    run = make_run()
    command = train(run)
    nodes.key(1, "2" * 64)
    jobs = [nodes.start(0, command, "--nodes-wait-s", "8"), nodes.start(1, command, "--nodes-wait-s", "8")]
    assert jobs[1].end() == 1 and "has another key" in jobs[1].output
    assert jobs[0].end() == 3
    assert f"1 of 2 nodes are here. {ADDRESSES[1]} was refused: It has another key." in jobs[0].output
    assert "A node is missing" in jobs[0].output
    assert not run.store.metrics.exists(), "nothing was started"
