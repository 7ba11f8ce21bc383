"""The flags of other machines, of several and of a submitted run: what they ask for, and what is refused."""

from __future__ import annotations

import sys

import pytest

from core.cli.machine_flags import (
    check_nodes_arguments,
    check_recipe_on_nodes,
    check_slurm_arguments,
    names_a_job,
    slurm_request,
)
from core.cli.parser import parse
from core.errors import ConfigError, PreflightError, UsageError
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows


def test_machines_lists_unless_something_else_is_asked_for() -> None:
    assert parse(["machines"]).action == "list"
    added = parse(["machines", "add", "gpubox", "me@gpubox.lan", "--port", "2222", "--json"])
    assert (added.action, added.name, added.address, added.port, added.json) == (
        "add", "gpubox", "me@gpubox.lan", 2222, True,
    )  # fmt: skip
    with pytest.raises(UsageError, match="no action 'ad'"):
        parse(["machines", "ad"])


@pytest.mark.parametrize("command", [["train", "--dataset-file", "x"], ["resume", "run"]])
def test_what_trains_can_do_so_elsewhere(command: list[str]) -> None:
    assert parse(command).machine is None
    assert parse([*command, "--machine", "gpubox"]).machine == "gpubox"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--nic", "eth0"], "--nic"),
        (["--master-addr", "node1"], "--master-addr"),
        (["--nodes-wait-s", "3"], "--nodes-"),
    ],
)
def test_their_companions_need_it(flags: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", *flags]), None)


def test_a_windows_machine_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(PreflightError, match="libuv"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2"]), "2")


@pytest.mark.skipif(sys.platform != "linux", reason="refused before on other systems")
def test_it_cannot_be_detached() -> None:
    with pytest.raises(UsageError, match="--detach"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2", "--detach"]), "2")
    with pytest.raises(UsageError, match="--machine"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2", "--machine", "gpubox"]), "2")
    check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2"]), "2")


def test_a_users_script_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot train on several"):
        check_recipe_on_nodes(get_recipe("script"))
    check_recipe_on_nodes(get_recipe("minigpt"))


@pytest.mark.skipif(sys.platform != "linux", reason="refused before on other systems")
def test_a_config_file_may_ask_for_them_and_a_flag_for_this_machine_alone() -> None:
    with pytest.raises(UsageError, match="--detach"):
        check_nodes_arguments(parse(["train", "--config", "x.toml", "--detach"]), "2")
    check_nodes_arguments(parse(["train", "--config", "x.toml", "--nodes", "1", "--nic", "eth0"]), None)


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
