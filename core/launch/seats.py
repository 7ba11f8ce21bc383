"""`NodeSeats`: the machine of each rank, and the address at which they reach the run's host."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psutil

from core.config.distributed import DistributedConfig
from core.errors import PreflightError
from core.machine.devices.device import Device
from core.machine.platform import free_port
from core.records import read_record

FILE: Final = "nodes.json"  # in a meeting's folder
# A person names the network interface as for PyTorch itself.
_NIC_VARIABLES: Final = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's machine.

    Attributes:
        node: The machine's number, from 0 for the one with the run's host.
        local_rank, local_size: Its place among the ranks of that machine.
        nic: The network interface that it uses there.
        address: That interface's IPv4 address.
        name: The machine's name.
    """

    node: int
    local_rank: int
    local_size: int
    nic: str
    address: str
    name: str = ""

    @property
    def is_remote(self) -> bool:
        return self.node > 0


@dataclass(frozen=True, slots=True)
class NodeSeats:
    """All ranks of one start, and what connects them.

    Attributes:
        address: The host's machine.
        listen_port: Where ranks of other machines report.
        store_port: Where ranks exchange their addresses.
        ranks: Their seats, by rank.
        gpus: Those of other machines.
    """

    address: str
    listen_port: int
    store_port: int
    ranks: tuple[Seat, ...]
    gpus: tuple[Device, ...] = ()

    @classmethod
    def of_ranks(cls, ranks: Sequence[Seat], devices: Sequence[Device]) -> NodeSeats:
        """Return the seats of ranks whose host will be on this machine, at ports that are free here."""
        others = [device for seat, device in zip(ranks, devices, strict=True) if seat.is_remote]
        gpus = tuple(device for device in others if device.kind == "cuda")
        return cls(ranks[0].address, free_port(), free_port(), tuple(ranks), gpus)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> NodeSeats:
        return read_record(cls, value, strict=True)

    @property
    def nodes(self) -> int:
        return 1 + max(seat.node for seat in self.ranks)

    @property
    def names(self) -> tuple[str, ...]:
        named = {seat.node: seat.name for seat in self.ranks}
        return tuple(named.get(node) or f"node {node}" for node in range(self.nodes))

    @property
    def rendezvous(self) -> str:
        """The URL at which ranks of all machines find each other."""
        return f"tcp://{self.address}:{self.store_port}"

    def placed(self, place: DistributedConfig) -> DistributedConfig:
        """Return a rank's place among these."""
        seat = self.ranks[place.rank]
        return place.replace(
            local_rank=seat.local_rank,
            devices_per_node=seat.local_size,
            num_nodes=self.nodes,
            node_rank=seat.node,
            nic=seat.nic,
            master_addr=self.address,
            master_port=self.store_port,
        )

    @property
    def text(self) -> str:
        """A line such as "2 machines: node1 (ranks 0, 1), node2 (rank 2)"."""
        by_node: dict[int, list[int]] = {}
        for rank, seat in enumerate(self.ranks):
            by_node.setdefault(seat.node, []).append(rank)
        parts = [
            f"{self.names[node]} ({'ranks' if len(own) > 1 else 'rank'} {', '.join(map(str, own))})"
            for node, own in sorted(by_node.items())
        ]
        return f"{len(parts)} machines: {', '.join(parts)}"


def own_seat(place: DistributedConfig, leader: str, environment: Mapping[str, str] = os.environ) -> Seat:
    """Return this process's seat in a run on several machines.

    Args:
        place: This process's.
        leader: The address of the machine with the run's host; empty on that machine.
        environment: May name the network interface (`GLOO_SOCKET_IFNAME`).

    Raises:
        PreflightError: No interface leads to the other machines.
    """
    found = _addresses()
    named = next((environment[name] for name in _NIC_VARIABLES if environment.get(name)), "")
    if named and named not in found:
        raise _no_interface(f"There is no network interface {named!r} with an IPv4 address", found)
    if not named:
        own = (place.master_addr, environment.get("SLURMD_NODENAME", ""), socket.gethostname())
        known = (leader,) if leader else own
        # The way to this machine's own address begins at that address.
        ways = [_own_address(_resolved(host)) for host in known if host]
        named = next((nic for way in ways for nic, address in found.items() if address == way), "")
    if not named:
        named = next(iter(found), "")
    if not named:
        raise _no_interface("This machine has no network", found)
    return Seat(place.node_rank, place.local_rank, place.devices_per_node, named, found[named], socket.gethostname())


def _addresses() -> dict[str, str]:
    """Return the interfaces that are up, but for loopback, and the IPv4 address of each."""
    status = psutil.net_if_stats()
    return {
        name: entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == socket.AF_INET
        and not entry.address.startswith("127.")
        and name in status
        and status[name].isup
    }


def _resolved(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""


def _own_address(host: str) -> str:
    """Return this machine's address on the way to another one; empty where there is no way. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((host, 9))
        except OSError:
            return ""
        return str(way.getsockname()[0])


def _no_interface(cause: str, found: Mapping[str, str]) -> PreflightError:
    names = ", ".join(f"{name} ({address})" for name, address in sorted(found.items())) or "none"
    return PreflightError(
        f"{cause}. There are: {names}.",
        "Name the interface that leads to the other machines: GLOO_SOCKET_IFNAME=eth0.",
        title="The other machines cannot be reached",
    )
