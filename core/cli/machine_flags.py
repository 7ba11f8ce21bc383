"""The flags of other machines over SSH and of Slurm, and what cannot be asked for with them."""

from __future__ import annotations

import argparse
from typing import Final

from core.errors import UsageError

_NEED_SLURM: Final = ("nodes", "gpus_per_node", "sbatch")
_FORBIDDEN: Final = ("machine", "run_dir")


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


def add_slurm_flags(parser: argparse._ActionsContainer) -> None:
    slurm = parser.add_argument_group("Slurm")
    slurm.add_argument("--slurm", metavar="PARTITION", nargs="?", const="", help="Submit the run with sbatch.")
    slurm.add_argument("--nodes", metavar="N", type=int, help="Number of nodes. Default: 1.")
    slurm.add_argument("--gpus-per-node", metavar="N", type=int, help="GPUs on each node.")
    slurm.add_argument(
        "--sbatch",
        metavar="OPTION",
        action="append",
        help="An option of sbatch: --sbatch=--time=8:00:00. May be repeated.",
    )


def check_slurm_arguments(arguments: argparse.Namespace) -> None:
    """Refuse flags of a submitted run without `--slurm`, and those that it cannot have; raises `UsageError`."""
    if arguments.slurm is None:
        for name in _NEED_SLURM:
            if getattr(arguments, name) is not None:
                raise UsageError(f"{_flag(name)} is given without --slurm.", "Add --slurm, or leave it out.")
        return
    for name in _FORBIDDEN:
        if getattr(arguments, name, None) is not None:
            raise UsageError(f"--slurm and {_flag(name)} are both given.", f"Leave out {_flag(name)}.")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
