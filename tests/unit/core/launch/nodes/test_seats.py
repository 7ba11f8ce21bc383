"""Which rank is on which machine."""

from __future__ import annotations

import dataclasses
import json

from core.config.distributed import DistributedConfig
from core.config.node_count import NodeCount
from core.launch.nodes.job import NodeJob
from core.launch.nodes.seats import NodeSeats, Seat, text_of
from core.machine.devices.device import Device

JOB = NodeJob(NodeCount(1, 2), "node1", nic="eth0", address="10.0.0.1", is_host=True)
SEATS = (Seat(0, 0, 2, "eth0", "node1"), Seat(0, 1, 2, "eth0", "node1"), Seat(1, 0, 1, "ib0", "node2"))
DEVICES = (
    Device("cpu:0", "cpu", 0, "CPU 0", 1),
    Device("cpu:1", "cpu", 1, "CPU 1", 1),
    Device("GPU-1", "cuda", 0, "A card", 2, is_amd=True, rocm_index=3),
)


def test_they_are_written_and_read_and_gpus_elsewhere_are_known() -> None:
    seats = NodeSeats.of_job(JOB, SEATS, DEVICES)
    again = NodeSeats.from_dict(json.loads(json.dumps(seats.to_dict())))
    assert again.ranks == SEATS and again.gpus == DEVICES[2:], "with what decides how it is shown to its rank"
    assert (again.nodes, again.rendezvous) == (2, "tcp://10.0.0.1:29404")


def test_a_rank_elsewhere_knows_its_machine_and_its_interface() -> None:
    seats = NodeSeats.of_job(JOB, SEATS, DEVICES)
    place = seats.placed(DistributedConfig(3, 2, 2, devices_per_node=3, launch_method="torchrun"))
    assert place == place.validate()
    found = (place.num_nodes, place.node_rank, place.local_rank, place.devices_per_node, place.nic, place.master_addr)
    assert found == (2, 1, 0, 1, "ib0", "10.0.0.1")


def test_one_machine_that_is_left_is_as_any_other() -> None:
    seats = NodeSeats.of_job(JOB, SEATS[:2], DEVICES[:2])
    place = seats.placed(DistributedConfig(2, 1, 1, devices_per_node=2, launch_method="torchrun"))
    assert (seats.nodes, seats.rendezvous, place.nic, place.master_addr) == (1, "", "", "127.0.0.1")


def test_they_are_told_in_words() -> None:
    assert text_of(SEATS) == "2 nodes: node1 (ranks 0, 1), node2 (rank 2)"
    assert text_of([dataclasses.replace(SEATS[0], name="")]) == "1 node: node 0 (rank 0)"
