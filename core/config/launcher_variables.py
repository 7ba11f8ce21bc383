"""The variables in which torchrun, Open MPI's mpirun and srun tell a process its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from core.errors import ConfigError

Environment = Mapping[str, str]
# Slurm numbers batch scripts and interactive shells from above: these are no steps of srun's.
_FIRST_SPECIAL_STEP: Final = 0xFFFFFFF0


def _torchrun(environment: Environment) -> dict[str, Any] | None:
    if "TORCHELASTIC_RUN_ID" not in environment or "RANK" not in environment:
        return None
    port = _number(environment, "MASTER_PORT")
    # "none" is torchrun's own default for a static rendezvous, the same for every job; its port is not.
    job = environment["TORCHELASTIC_RUN_ID"]
    return {
        "rank": _number(environment, "RANK"),
        "world_size": _number(environment, "WORLD_SIZE"),
        "local_rank": _number(environment, "LOCAL_RANK"),
        "devices_per_node": _number(environment, "LOCAL_WORLD_SIZE"),
        "node_rank": _number(environment, "GROUP_RANK", 0),
        "num_nodes": _number(environment, "GROUP_WORLD_SIZE", 1),
        "master_addr": environment.get("MASTER_ADDR") or "127.0.0.1",
        "master_port": port,
        "job": f"{job}:{port}" if job == "none" else job,
        "restart_count": _number(environment, "TORCHELASTIC_RESTART_COUNT", 0),
        "max_restarts": _number(environment, "TORCHELASTIC_MAX_RESTARTS", 0),
    }


def _mpirun(environment: Environment) -> dict[str, Any] | None:
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    rank, size, local_rank, local_size = (_number(environment, f"OMPI_COMM_WORLD_{name}") for name in names)
    return {
        "rank": rank,
        "world_size": size,
        "local_rank": local_rank,
        "devices_per_node": local_size,
        "node_rank": rank // max(1, local_size),
        "num_nodes": -(-size // max(1, local_size)),
        "job": environment.get("PMIX_NAMESPACE") or environment.get("OMPI_MCA_ess_base_jobid") or "",
    }


def _srun(environment: Environment) -> dict[str, Any] | None:
    step = environment.get("SLURM_STEP_ID", "")
    if "SLURM_PROCID" not in environment or not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP:
        return None
    size = _number(environment, "SLURM_STEP_NUM_TASKS", _number(environment, "SLURM_NTASKS", 1))
    # A shell or a single program has all devices of the step.
    if size == 1:
        return None
    nodes = _number(environment, "SLURM_STEP_NUM_NODES", _number(environment, "SLURM_NNODES", 1))
    node = _number(environment, "SLURM_NODEID", 0)
    return {
        "rank": _number(environment, "SLURM_PROCID"),
        "world_size": size,
        "local_rank": _number(environment, "SLURM_LOCALID"),
        "devices_per_node": _tasks_on(node, environment.get("SLURM_STEP_TASKS_PER_NODE", "")) or size // nodes,
        "node_rank": node,
        "num_nodes": nodes,
        "job": f"{environment.get('SLURM_JOB_ID', '')}.{step}",
    }


def _tasks_on(node: int, text: str) -> int:
    """Return the tasks on a node from a list such as "4(x2),2"; 0 if the list does not name it."""
    counts = [int(tasks) for tasks, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text) for _ in range(int(times or 1))]
    return counts[node] if node < len(counts) else 0


# The innermost first: torchrun is often started by srun, and mpirun in an allocation of Slurm.
_LAUNCHERS: Final[Mapping[str, Callable[[Environment], dict[str, Any] | None]]] = {
    "torchrun": _torchrun,
    "mpirun": _mpirun,
    "srun": _srun,
}
# Names for messages, by `DistributedConfig.launch_method`.
TITLES: Final = {"spawn": "Rankdeck", **{name: name for name in _LAUNCHERS}}


def launched_place(environment: Environment) -> dict[str, Any]:
    """Return a launched process's place, as fields of `DistributedConfig`; empty if no launcher started it.

    Raises:
        ConfigError: A variable is missing or is not a number.
    """
    for name, read in _LAUNCHERS.items():
        place = read(environment)
        if place is not None:
            return {"launch_method": name, **place}
    return {}


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
