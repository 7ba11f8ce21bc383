"""Machines of ranks: their seats, and the network interface of this one."""

from __future__ import annotations

import dataclasses
import json

import psutil
import pytest

from core.config.distributed import DistributedConfig
from core.errors import PreflightError
from core.launch.seats import NodeSeats, Seat, own_seat
from core.machine.devices.device import Device

SEATS = (
    Seat(0, 0, 2, "eth0", "10.0.0.1", "node1"),
    Seat(0, 1, 2, "eth0", "10.0.0.1", "node1"),
    Seat(1, 0, 1, "ib0", "10.0.0.2", "node2"),
)
DEVICES = (
    Device("cpu:0", "cpu", 0, "CPU 0", 1),
    Device("cpu:1", "cpu", 1, "CPU 1", 1),
    Device("GPU-1", "cuda", 0, "A card", 2, is_amd=True, rocm_index=3),
)
PLACE = DistributedConfig(3, 2, 0, 2, 1, 1, launch_method="torchrun")


def test_they_are_written_and_read_and_gpus_elsewhere_are_known() -> None:
    seats = NodeSeats.of_ranks(SEATS, DEVICES)
    again = NodeSeats.from_dict(json.loads(json.dumps(dataclasses.asdict(seats))))
    assert again.ranks == SEATS and again.gpus == DEVICES[2:], "with what decides how it is shown to its rank"
    assert (again.nodes, again.rendezvous) == (2, f"tcp://10.0.0.1:{seats.store_port}")
    assert again.text == "2 machines: node1 (ranks 0, 1), node2 (rank 2)"


def test_a_rank_elsewhere_knows_its_machine_and_its_interface() -> None:
    seats = NodeSeats.of_ranks(SEATS, DEVICES)
    place = seats.placed(DistributedConfig(3, 2, 2, devices_per_node=3, launch_method="torchrun"))
    assert place == place.validate()
    found = (place.num_nodes, place.node_rank, place.local_rank, place.devices_per_node, place.nic, place.master_addr)
    assert found == (2, 1, 0, 1, "ib0", "10.0.0.1")


def test_an_interface_is_named_as_for_pytorch() -> None:
    with pytest.raises(PreflightError, match="no network interface 'nowhere'"):
        own_seat(PLACE, "", {"GLOO_SOCKET_IFNAME": "nowhere"})
    ours = {
        name: entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family.name == "AF_INET" and not entry.address.startswith("127.")
    }
    if not ours:
        pytest.skip("this machine has no network")
    nic, address = next(iter(ours.items()))
    for seat in (own_seat(PLACE, address, {}), own_seat(PLACE, "", {"NCCL_SOCKET_IFNAME": nic})):
        assert (seat.nic, seat.address, seat.node) == (nic, address, 1)
