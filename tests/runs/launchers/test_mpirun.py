"""Runs under Open MPI's mpirun, MPICH's mpiexec, and under processes that are started by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable

import psutil
import pytest

from core.cli.entry import main
from core.config.distributed import DistributedConfig
from tests.helpers.host_fixture import FAILED, FINISHED, STOPPED, MakeRun
from tests.helpers.launched import MPI_VARIABLES, Job, has, meetings, train

pytestmark = [pytest.mark.timeout(300)]
# Debian's name beside MPICH, whose own is mpirun too.
MPIRUN = "mpirun.openmpi" if has("mpirun.openmpi") else "mpirun"
needs_mpirun = pytest.mark.skipif(not has("ompi_info"), reason="needs Open MPI's mpirun")
# Debian's name beside Open MPI; its Hydra is the process manager of Intel's mpiexec too.
MPICH = "mpiexec.mpich"
needs_mpich = pytest.mark.skipif(not has(MPICH), reason="needs MPICH's mpiexec")
Start = Callable[..., Job]


@needs_mpirun
def test_a_run_under_mpirun(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    job = start([MPIRUN, "-n", "2", sys.executable, *train(run)], MPI_VARIABLES)
    assert job.end() == 0, job.output
    assert run.end().state == FINISHED
    assert run.events("launch")[0]["launcher"] == "mpirun" and meetings() == []


@needs_mpich
def test_a_run_under_mpich(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    job = start([MPICH, "-n", "2", sys.executable, *train(run)])
    assert job.end() == 0, job.output
    assert (run.end().state, run.store.state().world_size) == (FINISHED, 2)
    assert run.events("launch")[0]["launcher"] == "mpiexec" and meetings() == []


@needs_mpich
def test_ctrl_c_at_mpich_stops_the_run(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02, commit_every=5)
    job = start([MPICH, "-n", "2", sys.executable, *train(run)])
    run.wait_for_step(10)
    job.note().interrupt()
    job.end()
    assert run.end().state in (STOPPED, FAILED), job.output
    assert run.checkpoints() and job.leftovers() == []


@needs_mpirun
def test_ctrl_c_at_mpirun_stops_the_run_in_order(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start([MPIRUN, "-n", "2", sys.executable, *train(run)], MPI_VARIABLES)
    run.wait_for_step(3)
    job.note().interrupt()
    job.end()
    state = run.end()
    assert (state.state, state.error) == (STOPPED, None), job.output
    assert run.checkpoints() and job.leftovers() == []


@needs_mpirun
def test_a_killed_mpirun_leaves_no_host_and_no_rank(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    run.behave(steps=5000, step_s=0.02)
    job = start([MPIRUN, "-n", "2", sys.executable, *train(run)], MPI_VARIABLES)
    run.wait_for_step(3)
    host = run.host
    job.note().process.kill()
    assert job.leftovers() == []
    psutil.wait_procs([host], timeout=60)
    assert not host.is_running() and run.ranks() == []
    assert run.end().state in (FAILED, STOPPED)  # its end reaches them as a signal, or is seen


@pytest.mark.windows
def test_processes_on_two_machines_are_refused(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    place = DistributedConfig(4, num_nodes=2, devices_per_node=2, master_port=29500, launch_method="torchrun")
    for name, value in place.to_env().items():
        monkeypatch.setenv(name, value)
    assert main(train(run)[2:]) == 2
    assert "torchrun started 4 processes on 2 machines, 2 of them on this one" in capsys.readouterr().err
    assert meetings() == [] and not run.store.state_json.exists()


@pytest.mark.windows
@pytest.mark.parametrize("world", [1, 2])
def test_processes_started_by_hand_are_ranks(make_run: MakeRun, start: Start, world: int) -> None:
    run = make_run(mode="auto")
    place = DistributedConfig(world, devices_per_node=world, launch_method="env", job=str(run.run_dir))
    command = [sys.executable, *train(run)]
    numbers = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in reversed(range(world))]
    jobs = [start(command, {**place.to_env(), **number}) for number in numbers]
    assert [job.end() for job in jobs] == [0] * world, jobs[-1].output
    assert (run.end().state, run.end().world_size) == (FINISHED, world)
    assert run.events("launch")[0]["launcher"] == "env" and meetings() == []
