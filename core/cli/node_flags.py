"""The flags of a run on several machines, and what cannot be asked for with them."""

from __future__ import annotations

import argparse
import sys

from core.config.distributed import DistributedConfig
from core.config.layers import MEETING_KEYS
from core.errors import PreflightError, UsageError
from core.launch.nodes.job import WAIT_S
from core.recipes.manifest import Recipe


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
    """Refuses several processes of srun on one node with `--nodes`: Rankdeck starts a node's ranks itself.

    Raises:
        UsageError: Says how many there are.
    """
    if place.devices_per_node > 1:
        raise UsageError(
            f"--nodes is given, but srun started {place.devices_per_node} processes on this node.",
            "Start one on each: srun --ntasks-per-node=1",
        )


def check_recipe_on_nodes(recipe: Recipe) -> None:
    """Refuses a user's own script, whose processes Rankdeck does not connect.

    Raises:
        UsageError: It is one.
    """
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
