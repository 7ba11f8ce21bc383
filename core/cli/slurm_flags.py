"""The flags of a run that is submitted to Slurm, and what they ask for."""

from __future__ import annotations

import argparse
from typing import Final

from core.config.node_count import NodeCount
from core.errors import UsageError
from core.launch.nodes.job import AUTO_NIC
from core.launch.slurm.batch_file import SlurmRequest

_NEED_SLURM: Final = ("time", "account", "gpus_per_node", "sbatch")
_OF_JOB: Final = ("nodes", "nic", "devices")
_FORBIDDEN: Final = (
    "rdzv_endpoint", "master_addr", "master_port", "machine", "run_dir", "distributed",
    "checkpoint",  # the job would begin at it each time that it continues
)  # fmt: skip


def add_slurm_flags(parser: argparse._ActionsContainer) -> None:
    slurm = parser.add_argument_group("Slurm (submits the run and follows its job; see also --nodes and --nic)")
    slurm.add_argument("--slurm", metavar="PARTITION", nargs="?", const="", help="Submit the run with sbatch.")
    slurm.add_argument("--gpus-per-node", metavar="N", type=int, help="GPUs on each node.")
    slurm.add_argument("--time", metavar="TIME", help="The job's time limit, such as 8:00:00.")
    slurm.add_argument("--account", metavar="NAME", help="The account that the job is charged to.")
    slurm.add_argument(
        "--sbatch", metavar="OPTION", action="append", help="A further option: --sbatch=--mem=64G. May be repeated."
    )


def check_slurm_arguments(arguments: argparse.Namespace) -> None:
    """Refuses flags of a submitted run without `--slurm`, and what such a run cannot do.

    Raises:
        UsageError: Names it.
    """
    if arguments.slurm is None:
        for name in _NEED_SLURM:
            if getattr(arguments, name) is not None:
                raise UsageError(f"{_flag(name)} is given without --slurm.", "Add --slurm, or leave it out.")
        return
    if getattr(arguments, "dry_run", False):
        raise UsageError("--slurm and --dry-run are both given.", "Leave out --slurm to see what resuming would do.")
    for name in _FORBIDDEN:
        if getattr(arguments, name, None) is not None:
            raise UsageError(f"--slurm and {_flag(name)} are both given.", f"Leave out {_flag(name)}.")


def names_a_job(arguments: argparse.Namespace) -> bool:
    """Whether any flag says what the job asks for, beside `--slurm` itself."""
    return bool(arguments.slurm) or any(getattr(arguments, name) is not None for name in (*_NEED_SLURM, *_OF_JOB))


def slurm_request(
    arguments: argparse.Namespace, nodes: str | None, gpus_per_node: int, cpu_devices: int
) -> SlurmRequest:
    """What the flags ask of Slurm; `nodes`: as `RunConfig.nodes` has it. Raises as `SlurmRequest.check`."""
    count = NodeCount.read(nodes or "1")
    return SlurmRequest(
        count.least,
        count.most,
        nic=arguments.nic or AUTO_NIC,
        gpus_per_node=gpus_per_node,
        cpus_per_task=cpu_devices,
        partition=arguments.slurm,
        time_limit=arguments.time or "",
        account=arguments.account or "",
        options=tuple(arguments.sbatch or ()),
    ).check()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
