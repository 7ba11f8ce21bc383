"""Flags of other machines: over SSH, several at once, and Slurm's nodes; and checks of their combinations."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from core.config.distributed import DistributedConfig
from core.config.layers import MEETING_KEYS
from core.config.node_count import NodeCount
from core.errors import PreflightError, UsageError
from core.launch.nodes.job import AUTO_NIC, WAIT_S
from core.launch.slurm.batch_file import SlurmRequest
from core.recipes.manifest import Recipe

_NEED_SLURM: Final = ("time", "account", "gpus_per_node", "sbatch")
_OF_JOB: Final = ("nodes", "nic", "devices")
_FORBIDDEN: Final = (
    "rdzv_endpoint", "master_addr", "master_port", "machine", "run_dir", "distributed",
    "checkpoint",  # the job would begin at it each time that it continues
)  # fmt: skip


def add_machine_flag(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--machine", metavar="NAME", help="Train on another machine (rankdeck machines). Default: on this computer."
    )


def add_machines_flags(machines: argparse._ActionsContainer) -> None:
    machines.add_argument(
        "action",
        nargs="?",
        choices=("list", "add", "remove", "check", "setup"),
        default="list",
        metavar="ACTION",
        help="list, add, remove, check (runs the doctor there) or setup (makes the environment there). Default: list.",
    )
    machines.add_argument("name", metavar="NAME", nargs="?", help="The machine.")
    machines.add_argument("address", metavar="ADDRESS", nargs="?", help="add: user@host, or a host of ~/.ssh/config.")
    machines.add_argument(
        "--port", metavar="N", type=int, help="add: the port of its SSH server. Default: as ssh has it."
    )
    machines.add_argument(
        "--identity", metavar="FILE", help="add: the private key. Default: ssh-agent's, and ssh's own."
    )
    machines.add_argument(
        "--python", metavar="PATH", help="add: a Python there with PyTorch. Default: setup makes one."
    )
    machines.add_argument("--starter", metavar="WORDS", help="add: what starts a Python there. Default: python3.")
    machines.add_argument("--remote-runs-dir", metavar="PATH", help="add: the folder of runs there.")
    machines.add_argument("--build", metavar="BUILD", help="setup: of PyTorch, as in rankdeck environment make.")
    machines.add_argument("--wheels", metavar="PATH", help="setup: a folder of wheels there; nothing is downloaded.")


def add_nodes_flags(parser: argparse._ActionsContainer) -> None:
    nodes = parser.add_argument_group("several machines (Linux; start the command on each)")
    nodes.add_argument(
        "--nodes", metavar="N|MIN:MAX", help="How many machines; MIN:MAX never trains with fewer than MIN."
    )
    nodes.add_argument(
        "--nic", metavar="NAME", help="This machine's network interface; auto: by which it reaches the host."
    )
    nodes.add_argument("--rdzv-endpoint", metavar="HOST:PORT", help="The machine with the run's host. Port: 29400.")
    nodes.add_argument("--master-addr", metavar="HOST", help="The same, in two flags.")
    nodes.add_argument("--master-port", metavar="PORT", help=argparse.SUPPRESS)
    nodes.add_argument("--nodes-wait-s", metavar="S", help=f"How long to wait for them. Default: {WAIT_S:g}.")


def check_one_on_each_node(place: DistributedConfig) -> None:
    """Refuses several processes of srun on one node with `--nodes`: Rankdeck starts a node's ranks itself."""
    if place.devices_per_node > 1:
        raise UsageError(
            f"--nodes is given, but srun started {place.devices_per_node} processes on this node.",
            "Start one on each: srun --ntasks-per-node=1",
        )


def check_recipe_on_nodes(recipe: Recipe) -> None:
    """Refuses a user's own script, whose processes Rankdeck does not connect."""
    if recipe.self_contained:
        raise UsageError(
            f"--nodes is given, but {recipe.title} cannot train on several machines.",
            "Start the script with torchrun on each machine, or leave out --nodes.",
        )


def check_nodes_arguments(arguments: argparse.Namespace, nodes: str | None) -> None:
    """Refuses flags of several machines without a number of them, and what a run on several cannot do.

    Args:
        arguments: The command's flags.
        nodes: What flags and config file together say, as `RunConfig.nodes` has it.

    Raises:
        UsageError, PreflightError: Names it.
    """
    if nodes is None:
        for name in MEETING_KEYS:
            if getattr(arguments, name) is not None and arguments.nodes is None:
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag} is given without --nodes.", "Say how many machines train: --nodes 2")
        return
    if sys.platform != "linux":
        raise PreflightError(
            "A run on several machines is started by torchrun, whose store does not work in PyTorch's builds for this "
            "system (they have no libuv).",
            "Start it on Linux machines. On this machine, leave out --nodes.",
            title="This machine cannot be a node",
        )
    if getattr(arguments, "machine", None) is not None:
        raise UsageError(
            "--nodes and --machine are both given.",
            "With --nodes the command is started on each machine, by you or over ssh; leave out --machine.",
        )
    detach = getattr(arguments, "detach", False)
    if detach or getattr(arguments, "dry_run", False):
        flag = "--detach" if detach else "--dry-run"
        raise UsageError(f"{flag} is given, but the command stays while its machine takes part.", f"Leave out {flag}.")


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
    """Refuses flags of a submitted run without `--slurm`, and flags that such a run cannot have."""
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
    """Whether any flag asks for a job, beside `--slurm` itself."""
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
