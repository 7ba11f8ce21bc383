"""Machines whose devices make trials together, and which rank is on which. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from core.launch.nodes.job import NodeJob
from core.launch.nodes.seats import NodeSeats, Seat
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.records import Limits, Text, read_record


@dataclass(frozen=True, slots=True)
class TrialMachine:
    """One of several machines.

    Attributes:
        name: What it is called on its network.
        address: On that network.
        nic: Its network interface.
        cores: Physical ones.
        devices: One rank each.
        facts: What a person should know about it, as plain values.
    """

    name: Text
    address: Text
    nic: Text
    cores: Annotated[int, Limits(1)]
    devices: tuple[Device, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrialMachine:
        """What `to_dict` has made; raises `RecordError`."""
        return read_record(cls, value, strict=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)


def label(number: int) -> str:
    """A machine's name in results, from 1; those that it has on its network are not written."""
    return f"machine {number}"


@dataclass(frozen=True, slots=True)
class Machines:
    """All of them: the one that asks for trials is the first. Ranks are counted over machines in this order."""

    all: tuple[TrialMachine, ...]

    @property
    def shares(self) -> tuple[int, ...]:
        """How many devices each has."""
        return tuple(len(machine.devices) for machine in self.all)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Those of all; each counts its CPU devices from 0, so here they are numbered by rank."""
        found = [device for machine in self.all for device in machine.devices]
        slots = cpu_slots(len(found))
        return tuple(slot if device.kind == "cpu" else device for device, slot in zip(found, slots, strict=True))

    def cores_for(self, ranks: int) -> int:
        """As many cores as give each of the first `ranks` ranks the threads that the fullest machine has for one."""
        shares = share_out(self.shares, ranks)
        threads = min(machine.cores // share for machine, share in zip(self.all, shares, strict=False) if share)
        return max(1, threads) * ranks

    def seats(self, job: NodeJob, ranks: int) -> NodeSeats | None:
        """Where the first `ranks` ranks are; None: all on this machine."""
        shares = share_out(self.shares, ranks)
        if len(shares) == 1:
            return None
        seats = [
            Seat(node, local, share, self.all[node].nic, label(node + 1))
            for node, share in enumerate(shares)
            for local in range(share)
        ]
        return NodeSeats.of_job(job, seats, self.devices[:ranks])


def share_out(shares: Sequence[int], ranks: int) -> tuple[int, ...]:
    """How many of the first `ranks` ranks are on each machine, up to the last that has any."""
    found: list[int] = []
    for share in shares:
        if ranks > 0:
            found.append(min(share, ranks))
            ranks -= share
    return tuple(found)
