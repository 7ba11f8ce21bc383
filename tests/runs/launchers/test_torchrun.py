"""Runs under a real torchrun: the run is as any other, and no process outlives launcher or host."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from core.cli.entry import main
from core.client import connect
from tests.helpers.host_fixture import FAILED, FINISHED, STOPPED, MakeRun
from tests.helpers.launched import Job, meetings, torchrun, train, wait

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform == "win32", reason="torchrun does not work on Windows (libuv)"),
]
Start = Callable[..., Job]


def test_a_run_under_torchrun_is_a_run_as_any_other(
    make_run: MakeRun, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(steps=10)
    job = start(torchrun(2) + train(run))
    assert job.end() == 0, job.output
    state = run.end()
    assert (state.state, state.world_size, state.devices) == (FINISHED, 2, ("cpu:0", "cpu:1"))
    launch = run.events("launch")[0]
    assert (launch["ddp"], launch["launcher"]) == ("external_launcher_detected", "torchrun")
    assert run.steps(0)[-1] == run.steps(1)[-1] == 20, run.log()
    assert job.output.count("Finished at step") == 1, "the first process reports for all"
    environment = json.loads(run.store.environment.read_text(encoding="utf-8"))
    assert environment["distributed"]["launch_method"] == "torchrun"
    assert main(["show", str(run.run_dir), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert meetings() == []


def test_started_by_us_it_says_so(make_run: MakeRun) -> None:
    run = make_run().start()
    assert run.end().state == FINISHED
    launch = run.events("launch")[0]
    assert (launch["ddp"], launch["launcher"]) == ("spawning_workers", None)


def test_a_live_run_is_found_and_stopped_from_elsewhere(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    connect(run.store).close()
    attached = subprocess.run(
        [sys.executable, "-m", "core", "stop", str(run.run_dir)], capture_output=True, encoding="utf-8", timeout=60
    )
    assert attached.returncode == 0, attached.stderr
    assert job.end() == 0, job.output
    assert run.end().state == STOPPED and run.checkpoints()


def test_ctrl_c_at_torchrun_stops_the_run_in_order(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    job.note().interrupt()
    job.end()
    state = run.end()
    assert (state.state, state.error) == (STOPPED, None), job.output
    assert run.checkpoints()
    assert job.leftovers() == []


def test_a_killed_agent_leaves_no_host_and_no_rank(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    host = run.host
    ranks = run.ranks()
    assert len(ranks) == 2
    job.note().process.kill()
    assert job.leftovers() == []
    psutil.wait_procs([host, *ranks], timeout=60)
    assert not host.is_running() and run.ranks() == []
    state = run.end()
    assert state.state == FAILED and state.error is not None
    assert "torchrun, which started this rank, has ended" in state.error["cause"]


def test_a_killed_host_leaves_no_rank_and_no_process(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start(torchrun(2) + train(run))
    run.wait_for_step(3)
    job.note()
    run.kill_host()
    assert job.end() != 0
    assert job.leftovers() == [] and run.ranks() == []
    assert run.store.state().state == "interrupted"


@pytest.mark.parametrize("rank", [0, 1])
def test_torchrun_starts_the_processes_again_and_the_run_continues(make_run: MakeRun, start: Start, rank: int) -> None:
    run = make_run()
    run.behave(steps=60, step_s=0.05, commit_every=5)
    job = start(torchrun(2, "--max-restarts=1") + train(run))
    run.wait_for_step(12)
    wait(lambda: run.checkpoints(), "a checkpoint")
    job.note().processes()[rank].kill()
    assert job.end() == 0, job.output
    state = run.end()
    assert state.state == FINISHED
    launches = run.events("launch")
    assert [launch["launcher"] for launch in launches] == ["torchrun", "torchrun"]
    assert launches[1]["checkpoint"] is not None, "it continues from a checkpoint"
    assert run.steps(0)[-1] == run.steps(1)[-1] == 60
    assert job.leftovers() == [] and meetings() == []


def test_a_rank_that_fails_ends_the_run_and_its_processes(make_run: MakeRun, start: Start) -> None:
    run = make_run().fail_at(1, 5, "raise")
    job = start(torchrun(2) + train(run))
    assert job.end() != 0
    state = run.end()
    assert state.state == FAILED and state.error is not None and "CPU 1" in state.error["title"]
    assert state.error["cause"] in job.output, "the launcher's output says why"


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        (["--devices", "cpux3"], ("cpux3 names 3 devices", "torchrun started 2 processes")),
        (["--devices", "cpu:1,cpu:0"], ("gives rank 0 the device cpu:1", "LOCAL_RANK=0 of torchrun gives it cpu:0")),
        (["--world-size", "4"], ("--world-size 4 asks for 4 devices", "torchrun started 2 processes")),
        (["--num-gpus", "3"], ("--num-gpus 3 asks for 3 devices", "torchrun started 2 processes")),
        (["--mode", "single"], ("Mode single trains on one device, and 2 were chosen",)),
        (["--detach"], ("--detach is given", "torchrun started")),
    ],
)
def test_contradictions_are_refused_with_both_values(
    make_run: MakeRun, start: Start, flags: list[str], values: tuple[str, ...], tmp_path: Path
) -> None:
    run = make_run()
    command = train(run, *flags)
    before = sorted(path for path in tmp_path.rglob("*") if path.suffix != ".log")
    job = start(torchrun(2) + command)
    assert job.end() != 0
    assert all(value in job.output for value in values), job.output
    assert sorted(path for path in tmp_path.rglob("*") if path.suffix != ".log") == before
    assert meetings() == []


def test_what_the_first_process_finds_wrong_ends_all(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    job = start(torchrun(2) + train(run, "--dataset-file", "nowhere.txt"))
    assert job.end() != 0
    assert "nowhere.txt" in job.output and job.output.count("The dataset is missing") == 1
    assert meetings() == [] and not run.store.state_json.exists()


def test_independent_ranks_under_torchrun(make_run: MakeRun, start: Start) -> None:
    run = make_run(mode="independent", steps=10)
    job = start(torchrun(2) + train(run))
    assert job.end() == 0, job.output
    assert (run.end().state, run.end().mode) == (FINISHED, "independent")


def test_one_process_is_one_device(make_run: MakeRun, start: Start) -> None:
    run = make_run(mode="auto")
    job = start(torchrun(1) + train(run))
    assert job.end() == 0, job.output
    assert (run.end().devices, run.end().mode) == (("cpu:0",), "single")
