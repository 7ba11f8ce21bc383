"""Runs under a real srun, on a cluster of one node."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED, MakeRun
from tests.helpers.launched import ROOT, Job, meetings, train
from tests.helpers.nvml_sim import NEEDS_SIMULATOR, pretend_cuda_torch, with_gpus
from tests.helpers.slurm import cluster, why_not

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm is here")]
Start = Callable[..., Job]


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    with cluster() as variables:
        yield variables


def test_a_run_under_srun(make_run: MakeRun, start: Start, slurm: dict[str, str]) -> None:
    run = make_run()
    job = start(["srun", "--ntasks=2", sys.executable, *train(run)], slurm)
    assert job.end() == 0, job.output
    state = run.end()
    assert (state.state, state.world_size) == (FINISHED, 2)
    launch = run.events("launch")[0]
    assert (launch["ddp"], launch["launcher"]) == ("external_launcher_detected", "srun")
    assert meetings() == []


def test_resume_under_srun(make_run: MakeRun, start: Start, slurm: dict[str, str]) -> None:
    run = make_run()
    run.behave(steps=400, step_s=0.02)
    job = start(["srun", "--ntasks=2", sys.executable, *train(run)], slurm)
    run.wait_for_step(3).stop()
    assert job.end() == 0, job.output
    assert run.end().state == STOPPED
    run.behave(steps=30, step_s=0.0)
    again = start(["srun", "--ntasks=2", sys.executable, "-m", "core", "resume", str(run.run_dir), "--yes"], slurm)
    assert again.end() == 0, again.output
    assert run.end().state == FINISHED
    assert [launch["launcher"] for launch in run.events("launch")] == ["srun", "srun"]


def test_one_task_is_no_launcher(make_run: MakeRun, start: Start, slurm: dict[str, str]) -> None:
    run = make_run()
    job = start(["srun", "--ntasks=1", sys.executable, *train(run, "--devices", "cpux2")], slurm)
    assert job.end() == 0, job.output
    assert run.end().world_size == 2 and run.events("launch")[0]["launcher"] is None


WHICH = """
import os
from core.cli.launched import launched_place, own_device
place = launched_place()
device = own_device(place, ("auto",), None, None)
print(place.local_rank, os.environ.get("CUDA_VISIBLE_DEVICES"), device.uuid, flush=True)
"""


@pytest.fixture
def slurm_with_gpus() -> Iterator[dict[str, str]]:
    with cluster(gpus=2) as variables:
        yield variables


@pytest.mark.parametrize(
    ("asked", "visible"), [(["--gres=gpu:2"], ["0,1", "0,1"]), (["--gpus-per-task=1"], ["0", "1"])]
)
@NEEDS_SIMULATOR[1]
@NEEDS_SIMULATOR[2]
def test_each_process_takes_the_gpu_that_slurm_gives_it(
    slurm_with_gpus: dict[str, str], tmp_path: Path, asked: list[str], visible: list[str]
) -> None:
    """Slurm's word is real, the GPUs answer as NVML's do; torch only looks like a build for GPUs."""
    torch = pretend_cuda_torch(tmp_path)
    script = [shutil.which("srun", path=slurm_with_gpus["PATH"]), "--ntasks=2", *asked, sys.executable, "-c", WHICH]
    run = f"import subprocess, sys; sys.exit(subprocess.run({script!r}).returncode)"
    env = {**slurm_with_gpus, "PYTHONPATH": f"{torch['PYTHONPATH']}:{ROOT}", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    done = with_gpus("two_workstation", ["-c", run], env=env)
    assert done.returncode == 0, done.stderr
    found = sorted(line.split() for line in done.stdout.splitlines())
    assert [words[:2] for words in found] == [[str(rank), shown] for rank, shown in enumerate(visible)], done.stdout
    assert len({words[2] for words in found}) == 2 and all(words[2].startswith("GPU-") for words in found)
