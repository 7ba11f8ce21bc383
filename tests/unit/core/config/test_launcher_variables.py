"""Launcher variables: which launcher has started a process, and as what."""

from __future__ import annotations

import pytest

from core.config.launcher_variables import launched_place
from core.errors import ConfigError

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "a-job",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "0",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}
SRUN = {
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_NTASKS": "8",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "8651",
}


def place(environment: dict[str, str]) -> tuple[object, ...]:
    found = launched_place(environment)
    names = ("launch_method", "rank", "local_rank", "world_size", "devices_per_node", "num_nodes", "node_rank")
    return tuple(found.get(name) for name in names)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (TORCHRUN, ("torchrun", 1, 1, 2, 2, 1, 0)),
        (SRUN, ("srun", 3, 1, 4, 2, 2, 1)),
        (OPEN_MPI, ("mpirun", 1, 1, 2, 2, 1, 0)),
        ({**SRUN, **TORCHRUN}, ("torchrun", 1, 1, 2, 2, 1, 0)),
        ({**SRUN, "SLURM_STEP_NUM_TASKS": "1", **OPEN_MPI}, ("mpirun", 1, 1, 2, 2, 1, 0)),
    ],
)
def test_the_innermost_launcher_is_recognised(environment: dict[str, str], expected: tuple[object, ...]) -> None:
    assert place(environment) == expected


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "1", "WORLD_SIZE": "2"},  # left over from something else
        {"TORCHELASTIC_RUN_ID": "a-job"},  # torchrun's own agent
        {**SRUN, "SLURM_STEP_ID": "4294967291"},  # a batch script
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77"},
        {**SRUN, "SLURM_STEP_NUM_TASKS": "1"},  # srun --pty bash
    ],
)
def test_what_no_launcher_started_is_not_taken_for_a_rank(environment: dict[str, str]) -> None:
    assert launched_place(environment) == {}


def test_jobs_are_told_apart() -> None:
    assert launched_place(TORCHRUN)["job"] == "a-job" and launched_place(TORCHRUN)["restart_count"] == 2
    assert launched_place({**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"})["job"] == "none:29500"
    assert launched_place(SRUN)["job"] == "77.0"
    assert launched_place(OPEN_MPI)["job"] == "8651"


@pytest.mark.parametrize(("name", "value"), [("WORLD_SIZE", "two"), ("LOCAL_RANK", None), ("MASTER_PORT", "-1")])
def test_a_variable_that_cannot_be_read_is_named(name: str, value: str | None) -> None:
    environment = {key: item for key, item in {**TORCHRUN, name: value}.items() if item is not None}
    with pytest.raises(ConfigError, match=name):
        launched_place(environment)


@pytest.mark.parametrize(("node", "text", "here"), [("0", "4(x2),2", 4), ("2", "4(x2),2", 2), ("1", "", 2)])
def test_srun_says_how_many_tasks_each_machine_has(node: str, text: str, here: int) -> None:
    found = launched_place({**SRUN, "SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": text})
    assert found["devices_per_node"] == here


def test_agents_of_torchrun_say_how_many_machines_there_are() -> None:
    unequal = {**TORCHRUN, "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "GROUP_WORLD_SIZE": "2"}
    found = launched_place(unequal)
    assert (found["num_nodes"], found["devices_per_node"], found["world_size"]) == (2, 1, 3)
