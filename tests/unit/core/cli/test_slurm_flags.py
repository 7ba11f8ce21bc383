"""The flags of a submitted run: what they ask for, and what is refused."""

from __future__ import annotations

import pytest

from core.cli.parser import parse
from core.cli.slurm_flags import check_slurm_arguments, names_a_job, slurm_request
from core.errors import ConfigError, UsageError

pytestmark = pytest.mark.windows


def test_what_is_asked_for() -> None:
    words = ["train", "--slurm", "long", "--nic", "ib0", "--time", "8:00:00", "--account", "me", "--sbatch=--mem=64G"]
    arguments = parse(words)
    check_slurm_arguments(arguments)
    asked = slurm_request(arguments, "1:4", gpus_per_node=2, cpu_devices=0)
    assert (asked.min_nodes, asked.max_nodes, asked.nic, asked.gpus_per_node) == (1, 4, "ib0", 2)
    assert (asked.partition, asked.time_limit, asked.account, asked.options) == (
        "long",
        "8:00:00",
        "me",
        ("--mem=64G",),
    )
    alone = slurm_request(parse(["train", "--slurm"]), None, gpus_per_node=0, cpu_devices=2)
    assert (alone.max_nodes, alone.nic, alone.partition, alone.cpus_per_task) == (1, "auto", "", 2)


@pytest.mark.parametrize(
    ("words", "names"), [([], False), (["--time", "1"], True), (["--nodes", "2"], True), (["--devices", "cpux2"], True)]
)
def test_whether_a_resume_says_anything_of_its_job(words: list[str], names: bool) -> None:
    assert names_a_job(parse(["resume", "run", "--slurm", *words])) is names
    assert names_a_job(parse(["resume", "run", "--slurm", "long"]))


@pytest.mark.parametrize("words", [["--checkpoint", "3"], ["--machine", "a"], ["--dry-run"], ["--rdzv-endpoint", "a"]])
def test_what_a_submitted_resume_cannot_do(words: list[str]) -> None:
    with pytest.raises(UsageError, match="are both given"):
        check_slurm_arguments(parse(["resume", "run", "--slurm", *words]))


@pytest.mark.parametrize("words", [["--time", "1"], ["--account", "a"], ["--gpus-per-node", "1"], ["--sbatch=--mem=1"]])
def test_flags_that_need_slurm(words: list[str]) -> None:
    with pytest.raises(UsageError, match="without --slurm"):
        check_slurm_arguments(parse(["train", *words]))


@pytest.mark.parametrize("words", [["--rdzv-endpoint", "a"], ["--machine", "a"], ["--run-dir", "a"]])
def test_flags_that_contradict_it(words: list[str]) -> None:
    with pytest.raises(UsageError, match="are both given"):
        check_slurm_arguments(parse(["train", "--slurm", *words]))


def test_a_number_of_nodes_that_is_none() -> None:
    with pytest.raises(ConfigError):
        slurm_request(parse(["train", "--slurm"]), "0", gpus_per_node=1, cpu_devices=0)
