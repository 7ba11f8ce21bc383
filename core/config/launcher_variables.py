"""Launchers: torchrun, srun and MPI's, each of which tells a process its place by variables of its own. Pure.

The innermost launcher counts: torchrun is often started by srun, and mpirun in an allocation of Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from core.errors import ConfigError

Environment = Mapping[str, str]
# Slurm numbers batch scripts and interactive shells from above: these are no steps of srun's.
_FIRST_SPECIAL_STEP: Final = 0xFFFFFFF0


class Launcher(Protocol):
    """A program that starts a run's processes; `name` is what people call it."""

    name: str

    def has_started(self, environment: Environment) -> bool:
        """Whether it has started the process with this environment, as one of several."""

    def place(self, environment: Environment) -> dict[str, Any]:
        """That process's place, as fields of `DistributedConfig`. Raises `ConfigError`: one is not a number."""


class Torchrun:
    name = "torchrun"

    def has_started(self, environment: Environment) -> bool:
        return "TORCHELASTIC_RUN_ID" in environment and "RANK" in environment

    def place(self, environment: Environment) -> dict[str, Any]:
        port = _number(environment, "MASTER_PORT")
        # "none" is torchrun's own default for a static rendezvous, the same for every job; its port is not.
        job = environment["TORCHELASTIC_RUN_ID"]
        return {
            **_place(
                rank=_number(environment, "RANK"),
                world_size=_number(environment, "WORLD_SIZE"),
                local_rank=_number(environment, "LOCAL_RANK"),
                local_size=_number(environment, "LOCAL_WORLD_SIZE"),
                node_rank=_number(environment, "GROUP_RANK", 0),
                nodes=_number(environment, "GROUP_WORLD_SIZE", 0),
            ),
            "master_addr": environment.get("MASTER_ADDR") or "127.0.0.1",
            "master_port": port,
            "job": f"{job}:{port}" if job == "none" else job,
            "restart_count": _number(environment, "TORCHELASTIC_RESTART_COUNT", 0),
            "max_restarts": _number(environment, "TORCHELASTIC_MAX_RESTARTS", 0),
        }


class OpenMpi:
    name = "mpirun"

    def has_started(self, environment: Environment) -> bool:
        return "OMPI_COMM_WORLD_RANK" in environment

    def place(self, environment: Environment) -> dict[str, Any]:
        names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
        numbers = [_number(environment, f"OMPI_COMM_WORLD_{name}") for name in names]
        job = environment.get("PMIX_NAMESPACE") or environment.get("OMPI_MCA_ess_base_jobid") or ""
        return {**_place(*numbers), "job": job}


class Pmi:
    """MPICH's, Intel's and Microsoft's mpiexec; Slurm sets the same two variables, beside its own."""

    name = "mpiexec"

    def has_started(self, environment: Environment) -> bool:
        size = environment.get("PMI_SIZE")
        return "PMI_RANK" in environment and size is not None and environment.get("SLURM_STEP_NUM_TASKS") != size

    def place(self, environment: Environment) -> dict[str, Any]:
        rank, size = _number(environment, "PMI_RANK"), _number(environment, "PMI_SIZE")
        local_rank, local_size = (
            _number(environment, "MPI_LOCALRANKID", rank),
            _number(environment, "MPI_LOCALNRANKS", size),
        )
        return _place(rank, size, local_rank, local_size)


class Srun:
    name = "srun"

    def has_started(self, environment: Environment) -> bool:
        step = environment.get("SLURM_STEP_ID", "")
        if "SLURM_PROCID" not in environment or not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP:
            return False
        return self._tasks(environment) > 1  # a shell or a single program has all devices of the step

    def place(self, environment: Environment) -> dict[str, Any]:
        size = self._tasks(environment)
        nodes = _number(environment, "SLURM_STEP_NUM_NODES", _number(environment, "SLURM_NNODES", 1))
        tasks = re.match(r"\d+", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))  # "2" or "2(x3)"
        return {
            **_place(
                rank=_number(environment, "SLURM_PROCID"),
                world_size=size,
                local_rank=_number(environment, "SLURM_LOCALID"),
                local_size=int(tasks[0]) if tasks is not None else size // nodes,
                node_rank=_number(environment, "SLURM_NODEID", 0),
            ),
            "job": f"{environment.get('SLURM_JOB_ID', '')}.{environment['SLURM_STEP_ID']}",
        }

    def _tasks(self, environment: Environment) -> int:
        return _number(environment, "SLURM_STEP_NUM_TASKS", _number(environment, "SLURM_NTASKS", 1))


LAUNCHERS: Final[tuple[Launcher, ...]] = (Torchrun(), OpenMpi(), Pmi(), Srun())  # the innermost first
# What people call who started the processes, by `DistributedConfig.launch_method`.
TITLES: Final = {"spawn": "Rankdeck", "env": "the environment", **{one.name: one.name for one in LAUNCHERS}}


def launched_place(environment: Environment) -> dict[str, Any]:
    """What a launcher has told this process, as fields of `DistributedConfig`; empty where there is none.

    Raises:
        ConfigError: One of its variables is missing or no number.
    """
    launcher = next((one for one in LAUNCHERS if one.has_started(environment)), None)
    return {} if launcher is None else {"launch_method": launcher.name, **launcher.place(environment)}


def _place(
    rank: int,
    world_size: int,
    local_rank: int,
    local_size: int,
    node_rank: int | None = None,
    nodes: int = 0,
) -> dict[str, Any]:
    nodes = nodes or -(-world_size // max(1, local_size))
    return {
        "rank": rank,
        "world_size": world_size,
        "local_rank": local_rank,
        "devices_per_node": local_size,
        "num_nodes": nodes,
        "node_rank": rank // max(1, local_size) if node_rank is None else node_rank,
    } | ({"master_port": 29_500} if nodes > 1 else {})


def _number(environment: Environment, name: str, otherwise: int | None = None) -> int:
    text = environment.get(name)
    if text is None and otherwise is not None:
        return otherwise
    if text is None or not text.strip().isdecimal():
        problem = "is not set" if text is None else f"is {text!r}, which is not a number"
        raise ConfigError(
            name,
            f"A launcher has started this process, but {name} {problem}.",
            "Start the processes with torchrun, srun or mpirun.",
            title="The launcher's variables cannot be read",
        )
    return int(text)
