"""Batch files: what they ask Slurm for, and that a shell reads them as they are meant."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from core.errors import UsageError
from core.launch.slurm.batch_file import BatchJob, SlurmRequest, batch_file

JOB = BatchJob(
    name="a run; rm -rf /",
    python="/opt/my python/bin/python",
    python_path="",
    train=("--dataset-file", "/data/it's text $HOME"),
    devices=("cpu:0", "cpu:1"),
    run_dir="/runs/100 %/a run",
    slurm=SlurmRequest(2, 2, nic="ib0", cpus_per_task=2, partition="long", time_limit="8:00:00", options=("--mem=8G",)),
    log="/runs/100 %/a run/slurm/job.log",
)


def directives(job: BatchJob) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in batch_file(job).splitlines() if line.startswith("#SBATCH")]


def test_several_nodes() -> None:
    asked = directives(JOB)
    for line in ("--nodes=2", "--ntasks-per-node=1", "--partition=long", "--time=8:00:00", "--mem=8G", "--requeue"):
        assert line in asked
    assert "'--output=/runs/100 %%/a run/slurm/job.log'" in asked, "% begins one of Slurm's patterns"
    text = batch_file(JOB)
    assert '--nodes "$SLURM_JOB_NUM_NODES":"$SLURM_JOB_NUM_NODES" --nic ib0' in text
    fewer = dataclasses.replace(JOB, slurm=SlurmRequest(1, 4))
    assert {"--nodes=1-4", "--no-kill"} <= set(directives(fewer))
    assert not any(line.startswith("--ntasks") for line in directives(fewer)), "Slurm would give the least number"
    assert "NodeAddr=" in batch_file(fewer) and '--nodes 1:"$SLURM_JOB_NUM_NODES" --nic auto' in batch_file(fewer)


def test_a_run_that_there_is_continues_with_its_changes() -> None:
    text = batch_file(dataclasses.replace(JOB, train=(), resume=("--epochs", "3", "--stop-at", "loss<1")))
    assert """set -- resume "$run" --yes --epochs 3 --stop-at 'loss<1' --devices cpu:0,cpu:1""" in text


def test_one_node() -> None:
    job = dataclasses.replace(JOB, slurm=SlurmRequest(gpus_per_node=2), devices=(), folder_per_job=True)
    text = batch_file(job)
    assert {"--nodes=1", "--ntasks-per-node=1", "--gres=gpu:2"} <= set(directives(job))
    assert "export CUDA_DEVICE_ORDER=PCI_BUS_ID\n" in text and "CUDA_DEVICE_ORDER" not in batch_file(JOB)
    assert "--rdzv-endpoint" not in text and "--devices" not in text and 'a run\'"-$SLURM_JOB_ID"' in text


@pytest.mark.skipif(sys.platform == "win32", reason="sh")
def test_a_shell_reads_it() -> None:
    for job in (JOB, dataclasses.replace(JOB, slurm=SlurmRequest(1, 3))):
        done = subprocess.run(
            ["sh", "-n"], input=batch_file(job).encode(), capture_output=True, timeout=30, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert not any(line.startswith("rm ") for line in batch_file(job).splitlines())


@pytest.mark.parametrize("wrong", [{"partition": "a\n#SBATCH -x"}, {"options": ("mem=4",)}, {"nic": "\x1b"}])
def test_what_cannot_be_a_line_of_the_file(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        dataclasses.replace(SlurmRequest(2, 2), **wrong).check()  # type: ignore[arg-type]
