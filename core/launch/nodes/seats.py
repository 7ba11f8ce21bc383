"""`NodeSeats`: which rank is on which machine, and where they reach the run's host. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.config.distributed import DistributedConfig
from core.launch.nodes.job import NodeJob
from core.machine.devices.device import Device
from core.records import read_record

FILE: Final = "nodes.json"  # in a meeting's folder


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's machine.

    Attributes:
        node: The machine's number, from 0 for the one with the run's host.
        local_rank, local_size: Its place among the ranks of that machine.
        nic: The network interface that it uses there.
        name: What the machine is called.
    """

    node: int
    local_rank: int
    local_size: int
    nic: str
    name: str = ""

    @property
    def is_remote(self) -> bool:
        return self.node > 0


@dataclass(frozen=True, slots=True)
class NodeSeats:
    """All ranks of one start, and what connects them.

    Attributes:
        address: The host's machine, on the interface that was named.
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
    def of_job(cls, job: NodeJob, ranks: Sequence[Seat], devices: Sequence[Device]) -> NodeSeats:
        """Those of a job whose host is on this machine."""
        others = [device for seat, device in zip(ranks, devices, strict=True) if seat.is_remote]
        gpus = tuple(device for device in others if device.kind == "cuda")
        return cls(job.address, job.listen_port, job.store_port, tuple(ranks), gpus)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> NodeSeats:
        return read_record(cls, value, strict=True)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def nodes(self) -> int:
        return 1 + max(seat.node for seat in self.ranks)

    @property
    def names(self) -> tuple[str, ...]:
        named = {seat.node: seat.name for seat in self.ranks}
        return tuple(named.get(node) or f"node {node}" for node in range(self.nodes))

    @property
    def rendezvous(self) -> str:
        """Where ranks of all machines find each other; one machine's do in a file."""
        return f"tcp://{self.address}:{self.store_port}" if self.nodes > 1 else ""

    def placed(self, place: DistributedConfig) -> DistributedConfig:
        """A rank's place among these."""
        seat = self.ranks[place.rank]
        return place.replace(
            local_rank=seat.local_rank,
            devices_per_node=seat.local_size,
            num_nodes=self.nodes,
            node_rank=seat.node,
            nic=seat.nic if self.nodes > 1 else "",
            master_addr=self.address if self.nodes > 1 else place.master_addr,
            master_port=self.store_port if self.nodes > 1 else place.master_port,
        )


def text_of(ranks: Sequence[Seat]) -> str:
    """ "2 nodes: node1 (ranks 0, 1), node2 (rank 2)"."""
    by_node: dict[int, list[int]] = {}
    for rank, seat in enumerate(ranks):
        by_node.setdefault(seat.node, []).append(rank)
    names = {seat.node: seat.name or f"node {seat.node}" for seat in ranks}
    parts = [
        f"{names[node]} ({'ranks' if len(own) > 1 else 'rank'} {', '.join(map(str, own))})"
        for node, own in sorted(by_node.items())
    ]
    return f"{len(parts)} node{'' if len(parts) == 1 else 's'}: {', '.join(parts)}"
