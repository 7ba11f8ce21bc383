"""Machines whose devices make trials together."""

from __future__ import annotations

import json

from core.launch.nodes.job import NodeJob
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.trials.machines import Machines, TrialMachine, label, share_out

GPU = Device("GPU-1", "cuda", 0, "A card", 24 << 30, (8, 9))
HERE = TrialMachine("one", "10.0.0.1", "eth0", 8, tuple(cpu_slots(2)), {"os": "Linux 6"})
THERE = TrialMachine("two", "10.0.0.2", "ib0", 3, (cpu_slots(1)[0], GPU))
JOB = NodeJob(2, 2, "one", 29_400, "eth0", "10.0.0.1", is_host=True)


def test_devices_are_counted_over_machines_in_order() -> None:
    machines = Machines((HERE, THERE))
    assert [device.uuid for device in machines.devices] == ["cpu:0", "cpu:1", "cpu:2", "GPU-1"]
    assert machines.shares == (2, 2)
    assert [share_out((2, 2), ranks) for ranks in (1, 2, 3, 4)] == [(1,), (2,), (2, 1), (2, 2)]


def test_ranks_on_this_machine_alone_are_as_without_others() -> None:
    machines = Machines((HERE, THERE))
    assert machines.seats(JOB, 2) is None
    seats = machines.seats(JOB, 3)
    assert seats is not None and seats.rendezvous == "tcp://10.0.0.1:29404"
    assert [(seat.node, seat.local_rank, seat.local_size, seat.nic) for seat in seats.ranks] == [
        (0, 0, 2, "eth0"), (0, 1, 2, "eth0"), (1, 0, 1, "ib0"),
    ]  # fmt: skip
    assert seats.names == ("machine 1", "machine 2") == (label(1), label(2))


def test_all_ranks_have_the_threads_that_the_fullest_machine_has_for_one() -> None:
    machines = Machines((HERE, THERE))
    assert machines.cores_for(2) == 2 * 4
    assert machines.cores_for(3) == 3 * 3, "the second machine has three cores for its one"
    assert machines.cores_for(4) == 4 * 1


def test_a_machine_introduces_itself() -> None:
    assert TrialMachine.from_dict(json.loads(json.dumps(THERE.to_dict()))) == THERE
