"""The command of torchrun's agent, its network interface, and what is said on each machine."""

from __future__ import annotations

import pytest

from core.config.node_count import NodeCount
from core.errors import PreflightError, UsageError
from core.launch.nodes.agent import (
    address_of,
    addresses,
    agent_command,
    compared,
    line_elsewhere,
    resolve_host,
    without_own_flags,
)
from core.launch.nodes.job import NodeJob

FOUND = {"eth0": "10.0.0.1", "lo": "127.0.0.1"}
JOB = NodeJob(NodeCount(1, 2), "node1", nic="eth0", address="10.0.0.1", is_host=True)
FIXED = JOB.replace(count=NodeCount(2, 2, can_lose=True))
TYPED = [
    "train", "--dataset-file", "books", "--nodes=1:2", "--nic", "eth0", "--rdzv-endpoint", "node1",
    "--devices", "cpux2", "--json",
]  # fmt: skip


def test_workers_are_this_command_without_machines_and_devices() -> None:
    command = agent_command(JOB, "name", 2, "/python", without_own_flags(TYPED))
    assert command[:3] == ["/python", "-m", "torch.distributed.run"]
    assert command[-7:] == ["/python", "-m", "core", "train", "--dataset-file", "books", "--json"]
    assert {"--nnodes=1:2", "--nproc-per-node=2", "--rdzv-endpoint=node1:29400", "--rdzv-id=name"} <= set(command)
    conf = next(word for word in command if word.startswith("--rdzv-conf="))
    assert "is_host=1" in conf and "keep_alive_interval=1" in conf
    assert "join_timeout=660" in conf, "the command beside it is the first to give up"


def test_agents_continue_with_fewer_machines_than_they_start_with() -> None:
    assert "--nnodes=1:2" in agent_command(FIXED, "name", 2, "/python", [])
    assert "--nnodes=2:2" in agent_command(JOB.replace(count=NodeCount(2, 2)), "name", 2, "/python", [])
    assert line_elsewhere(["train", "--nodes", "2"], FIXED)[2:4] == ["--nodes", "2"]


def test_other_machines_get_the_line_that_they_need() -> None:
    assert line_elsewhere(TYPED, JOB) == [
        "rankdeck", "train", "--dataset-file", "books", "--nodes", "1:2", "--nic", "auto", "--rdzv-endpoint",
        "node1:29400",
    ]  # fmt: skip


def test_the_interface_and_the_devices_may_differ_and_nothing_else() -> None:
    other = ["train", "--dataset-file", "books", "--nodes", "1:2", "--nic", "ib0", "--rdzv-endpoint", "10.0.0.1"]
    assert compared(TYPED) == compared(other)
    assert compared(TYPED) != compared([*other, "--steps", "3"])


def test_it_must_be_named_and_be_there() -> None:
    assert address_of("eth0", FOUND, "10.0.0.9") == ("eth0", "10.0.0.1")
    for asked in ("", "eth1"):
        with pytest.raises(UsageError) as raised:
            address_of(asked, FOUND, "10.0.0.9")
        assert "eth0 (10.0.0.1), lo (127.0.0.1)" in raised.value.next_step, "it says which there are"


def test_it_can_be_the_one_on_the_way_to_the_host() -> None:
    assert address_of("auto", FOUND, "127.0.0.1") == ("lo", "127.0.0.1")
    with pytest.raises(UsageError, match="'auto'"):
        address_of("auto", {"eth0": "10.0.0.1"}, "127.0.0.1")


def test_loopback_is_among_those_of_this_machine() -> None:
    assert "127.0.0.1" in addresses().values()


def test_a_name_that_is_unknown_is_refused() -> None:
    assert resolve_host("127.0.0.1") == "127.0.0.1"
    with pytest.raises(PreflightError, match=r"no\.such\.machine\.invalid"):
        resolve_host("no.such.machine.invalid")
