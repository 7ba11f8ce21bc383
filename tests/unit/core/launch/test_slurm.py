"""Batch files: what they ask Slurm for, and that a shell reads them as they are meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from core.errors import UsageError
from core.launch.slurm import SlurmRequest, batch_file

CPUS = SlurmRequest(2, cpu_devices=2, partition="long", options=("--mem=8G",))
RUN = PurePosixPath("/runs/100 %/a run; rm -rf /")
TRAIN = ("--dataset-file", "/data/it's text $HOME")


def text_of(asked: SlurmRequest) -> str:
    return batch_file(RUN, TRAIN, asked)


def directives(asked: SlurmRequest) -> set[str]:
    lines = text_of(asked).splitlines()
    return {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")}


def test_a_task_for_each_device_of_each_node() -> None:
    wanted = {"--nodes=2", "--ntasks-per-node=2", "--partition=long", "--mem=8G", "--requeue", "--signal=B:TERM@120"}
    assert wanted < directives(CPUS)
    assert "'--output=/runs/100 %%/a run; rm -rf /slurm/job.log'" in directives(CPUS), "% begins a pattern of Slurm's"
    assert {"--nodes=1", "--ntasks-per-node=4", "--gres=gpu:4"} < directives(SlurmRequest(gpus_per_node=4))
    assert "'--partition=a #SBATCH -x'" in directives(SlurmRequest(gpus_per_node=1, partition="a\n#SBATCH -x"))


def test_it_trains_the_first_time_and_resumes_later() -> None:
    for line in ('resume "$run" --yes --devices cpu:0,cpu:1 "$@"', '--devices cpu:0,cpu:1 --run-dir "$run" "$@"'):
        assert line in text_of(CPUS)
    on_gpus = text_of(SlurmRequest(gpus_per_node=1))
    assert 'resume "$run" --yes "$@"' in on_gpus and "export CUDA_DEVICE_ORDER=PCI_BUS_ID\n" in on_gpus


@pytest.mark.skipif(sys.platform == "win32", reason="sh")
def test_a_shell_reads_it() -> None:
    done = subprocess.run(["sh", "-n"], input=text_of(CPUS).encode(), capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not any(line.startswith("rm ") for line in text_of(CPUS).splitlines())


@pytest.mark.parametrize("numbers", [(0, 1, 0), (1, 0, 0), (1, 1, 2)])
def test_what_cannot_be_a_request(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError):
        SlurmRequest(*numbers)
