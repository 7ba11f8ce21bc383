"""Network interfaces of this machine: the one that a run of several machines uses, and its address."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import psutil

from core.errors import PreflightError, UsageError
from core.launch.nodes.job import AUTO_NIC


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
