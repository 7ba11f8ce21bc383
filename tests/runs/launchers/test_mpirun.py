"""Runs under Open MPI's mpirun, and under processes that are started by hand with torchrun's variables."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED, MakeRun
from tests.helpers.launched import MPI_VARIABLES, Job, has, meetings, train

pytestmark = [pytest.mark.timeout(300)]
# Debian's name beside MPICH, whose own is mpirun too.
MPIRUN = "mpirun.openmpi" if has("mpirun.openmpi") else "mpirun"
needs_mpirun = pytest.mark.skipif(not has("ompi_info"), reason="needs Open MPI's mpirun")
Start = Callable[..., Job]


@needs_mpirun
def test_a_run_under_mpirun(make_run: MakeRun, start: Start) -> None:
    run = make_run()
    job = start([MPIRUN, "-n", "2", sys.executable, *train(run)], MPI_VARIABLES)
    assert job.end() == 0, job.output
    assert run.end().state == FINISHED
    assert run.events("launch")[0]["launcher"] == "mpirun" and meetings() == []


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


@pytest.mark.windows
@pytest.mark.parametrize("world", [1, 2])
def test_processes_started_by_hand_are_ranks(make_run: MakeRun, start: Start, world: int) -> None:
    run = make_run(mode="auto")
    command = [sys.executable, *train(run)]
    shared = {"TORCHELASTIC_RUN_ID": str(run.run_dir), "MASTER_PORT": "29500"}
    shared |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    jobs = [start(command, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in reversed(range(world))]
    assert [job.end() for job in jobs] == [0] * world, jobs[-1].output
    assert (run.end().state, run.end().world_size) == (FINISHED, world)
    assert run.events("launch")[0]["launcher"] == "torchrun" and meetings() == []
