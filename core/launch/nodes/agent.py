"""torchrun's elastic agent on one machine: its command, and the network interface that it listens on.

The command has the time-outs by which a lost machine is noticed.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from typing import Final

import psutil

from core.errors import PreflightError, UsageError
from core.launch.nodes.job import AUTO_NIC, NodeJob

_LONGER_S: Final = 60  # the command beside an agent ends it first where a machine is lost, and says which
# How often agents start their workers again. Each time follows a checkpoint, and only a lost process leads to one.
MAX_RESTARTS: Final = 100
RENDEZVOUS: Final = {
    "last_call_timeout": "3",  # s until agents start with those that are there; torchrun's own: 30
    "keep_alive_interval": "1",  # s; with the next: a dead machine is known as such after 3 s, not after 15
    "keep_alive_max_attempt": "3",
    "read_timeout": "10",  # s; torchrun's own: 60. It bounds no call whose network is cut: see `core.cli.nodes`
}
_OWN: Final = ("--nodes", "--nic", "--rdzv-endpoint", "--master-addr", "--master-port", "--nodes-wait-s")
_DEVICES: Final = ("--devices", "--cuda-ids", "--world-size")
OUTPUT_FLAGS: Final = ("--json", "--quiet")  # the form of the output, which may differ from process to process


def agent_command(job: NodeJob, name: str, devices: int, python: str, arguments: Sequence[str]) -> list[str]:
    """The command line of torchrun's agent on this machine.

    Args:
        job: This machine's part.
        name: The job's, from the desk.
        devices: Ranks on this machine.
        python: The interpreter with torch.
        arguments: Those of `rankdeck`, without `own_flags`.
    """
    own = {"is_host": int(job.is_host), **RENDEZVOUS, "join_timeout": math.ceil(job.wait_s) + _LONGER_S}
    settings = ",".join(f"{key}={value}" for key, value in own.items())
    return [
        python, "-m", "torch.distributed.run",
        f"--nnodes={job.count.fewest}:{job.count.most}",
        f"--nproc-per-node={devices}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={job.endpoint}",
        f"--rdzv-id={name}",
        f"--rdzv-conf={settings}",
        f"--local-addr={job.address}",
        f"--max-restarts={MAX_RESTARTS}",
        "--monitor-interval=0.5",
        "--no-python", python, "-m", "core", *arguments,
    ]  # fmt: skip


def without_own_flags(arguments: Sequence[str]) -> list[str]:
    """A command's arguments for a worker: without what is said of machines and their devices."""
    return _without(arguments, (*_OWN, *_DEVICES))


def compared(arguments: Sequence[str]) -> list[str]:
    """What must be the same on all machines: all but the interface, the devices and the form of the output."""
    return [word for word in _without(arguments, (*_OWN, *_DEVICES)) if word not in OUTPUT_FLAGS]


def line_elsewhere(arguments: Sequence[str], job: NodeJob) -> list[str]:
    """The command for another machine, whose interface and devices may have other names."""
    flags = ["--nodes", job.count.text, "--nic", AUTO_NIC, "--rdzv-endpoint", job.endpoint]
    return ["rankdeck", *compared(arguments), *flags]


def _without(arguments: Sequence[str], flags: Sequence[str]) -> list[str]:
    kept: list[str] = []
    is_value = False
    for word in arguments:
        if is_value:
            is_value = False
        elif word in flags:
            is_value = True
        elif word.partition("=")[0] not in flags:
            kept.append(word)
    return kept


def addresses() -> dict[str, str]:
    """The interfaces that are up, and the IPv4 address of each."""
    status = psutil.net_if_stats()
    return {
        name: entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == socket.AF_INET and name in status and status[name].isup
    }


def address_of(nic: str, found: Mapping[str, str], host: str) -> tuple[str, str]:
    """The interface that is asked for, and its address.

    Args:
        nic: Its name; empty where none was named; `AUTO_NIC`: the one through which `host` is reached.
        found: This machine's (`addresses`).
        host: The address of the machine with the run's host.

    Raises:
        UsageError: None is named, or none of that name is there.
    """
    names = ", ".join(f"{name} ({address})" for name, address in sorted(found.items()))
    if nic == AUTO_NIC:
        own = own_address(host)
        nic = next((name for name, address in found.items() if address == own), nic)
    if not nic:
        raise UsageError(
            "With --nodes, Rankdeck and PyTorch listen on one network interface, and none is named.",
            f"Choose one of this machine: --nic NAME, or --nic auto. There are: {names}.",
        )
    if nic not in found:
        raise UsageError(f"There is no network interface {nic!r} with an IPv4 address.", f"There are: {names}.")
    return nic, found[nic]


def own_address(host: str) -> str:
    """This machine's address on the way to another one; empty where there is no way. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((host, 9))
        except OSError:
            return ""
        return str(way.getsockname()[0])


def resolve_host(host: str) -> str:
    """The IPv4 address of a machine.

    Raises:
        PreflightError: The name is unknown here.
    """
    try:
        return str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise PreflightError(
            f"The machine {host} is not known here ({error}).",
            "Give its address instead of its name: --rdzv-endpoint ADDRESS",
            title="A node cannot be found",
        ) from None
