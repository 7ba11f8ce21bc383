"""Launcher variables: recognises torchrun, srun and MPI's launchers by what they set for each process. Pure.

The innermost launcher counts: torchrun is often started by srun, and mpirun in an allocation of Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from core.errors import ConfigError

# What people call who started the processes.
TITLES: Final = {
    "spawn": "Rankdeck",
    "torchrun": "torchrun",
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpiexec",
    "env": "the environment",
}

# Slurm numbers batch scripts and interactive shells from above: these are no steps of srun's.
_FIRST_SPECIAL_STEP: Final = 0xFFFFFFF0


def launched_place(environment: Mapping[str, str]) -> dict[str, Any]:
    """What a launcher has told this process, as fields of `DistributedConfig`; empty where there is none.

    Raises:
        ConfigError: One of its variables is missing or no number.
    """
    for recognise in (_torchrun, _open_mpi, _pmi, _srun):
        found = recognise(environment)
        if found:
            return found
    return {}


def _torchrun(environment: Mapping[str, str]) -> dict[str, Any]:
    if "TORCHELASTIC_RUN_ID" not in environment or "RANK" not in environment:
        return {}
    port = _number(environment, "MASTER_PORT")
    # "none" is torchrun's own default for a static rendezvous, the same for every job; its port is not.
    job = environment["TORCHELASTIC_RUN_ID"]
    return {
        **_place(
            "torchrun",
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


def _open_mpi(environment: Mapping[str, str]) -> dict[str, Any]:
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return {}
    rank, size = _number(environment, "OMPI_COMM_WORLD_RANK"), _number(environment, "OMPI_COMM_WORLD_SIZE")
    local_size = _number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")
    job = environment.get("PMIX_NAMESPACE") or environment.get("OMPI_MCA_ess_base_jobid") or ""
    place = _place("mpirun", rank, size, _number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"), local_size)
    return {**place, "job": job}


def _pmi(environment: Mapping[str, str]) -> dict[str, Any]:
    """MPICH's, Intel's and Microsoft's mpiexec; Slurm sets the same two variables, beside its own."""
    if "PMI_RANK" not in environment or "PMI_SIZE" not in environment:
        return {}
    if environment.get("SLURM_STEP_NUM_TASKS") == environment["PMI_SIZE"]:
        return {}
    rank, size = _number(environment, "PMI_RANK"), _number(environment, "PMI_SIZE")
    local_rank, local_size = (
        _number(environment, "MPI_LOCALRANKID", rank),
        _number(environment, "MPI_LOCALNRANKS", size),
    )
    return _place("mpiexec", rank, size, local_rank, local_size)


def _srun(environment: Mapping[str, str]) -> dict[str, Any]:
    step = environment.get("SLURM_STEP_ID", "")
    if "SLURM_PROCID" not in environment or not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP:
        return {}
    size = _number(environment, "SLURM_STEP_NUM_TASKS", _number(environment, "SLURM_NTASKS", 1))
    if size == 1:  # a shell or a single program: it has all devices of the step
        return {}
    nodes = _number(environment, "SLURM_STEP_NUM_NODES", _number(environment, "SLURM_NNODES", 1))
    tasks = re.match(r"\d+", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))  # "2" or "2(x3)"
    return {
        **_place(
            "srun",
            rank=_number(environment, "SLURM_PROCID"),
            world_size=size,
            local_rank=_number(environment, "SLURM_LOCALID"),
            local_size=int(tasks[0]) if tasks is not None else size // nodes,
            node_rank=_number(environment, "SLURM_NODEID", 0),
        ),
        "job": f"{environment.get('SLURM_JOB_ID', '')}.{step}",
    }


def _place(
    method: str,
    rank: int,
    world_size: int,
    local_rank: int,
    local_size: int,
    node_rank: int | None = None,
    nodes: int = 0,
) -> dict[str, Any]:
    nodes = nodes or -(-world_size // max(1, local_size))
    return {
        "launch_method": method,
        "rank": rank,
        "world_size": world_size,
        "local_rank": local_rank,
        "devices_per_node": local_size,
        "num_nodes": nodes,
        "node_rank": rank // max(1, local_size) if node_rank is None else node_rank,
    } | ({"master_port": 29_500} if nodes > 1 else {})


def _number(environment: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
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
