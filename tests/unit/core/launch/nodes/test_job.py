"""What `--nodes` and its companions or a config file ask for, and what the workers of a machine are told."""

from __future__ import annotations

from typing import Any

import pytest

from core.cli.parser import parse
from core.config.node_count import NodeCount
from core.errors import ConfigError, UsageError
from core.launch.nodes.job import ENV_NODE, NodeJob


@pytest.mark.parametrize(
    ("nodes", "values", "wanted"),
    [
        ("2", {"rdzv_endpoint": "node1"}, (2, 2, "node1:29400", "", 600.0)),
        ("1:4", {"rdzv_endpoint": "10.0.0.1:4000", "nic": "eth0"}, (1, 4, "10.0.0.1:4000", "eth0", 600.0)),
        ("2", {"master_addr": "node1", "nodes_wait_s": "8"}, (2, 2, "node1:29400", "", 8.0)),
        ("2", {"master_addr": "node1", "master_port": 4000, "nic": None}, (2, 2, "node1:4000", "", 600.0)),
    ],
)
def test_values_are_read_alike_from_a_file_and_from_flags(
    nodes: str, values: dict[str, Any], wanted: tuple[int, int, str, str, float]
) -> None:
    job = NodeJob.from_values(nodes, values)
    assert job is not None
    assert (job.count.least, job.count.most, job.endpoint, job.nic, job.wait_s) == wanted
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]
    arguments = parse(["train", "--nodes", nodes, *flags])
    assert NodeJob.from_values(arguments.nodes, vars(arguments)) == job


def test_one_machine_is_no_run_on_several() -> None:
    assert NodeJob.from_values(None, {"nic": "eth0"}) is None
    assert NodeJob.from_values("1", {}) is None


@pytest.mark.parametrize(
    ("nodes", "values", "field", "words"),
    [
        ("0", {"rdzv_endpoint": "a"}, "nodes", "'0'"),
        ("3:2", {"rdzv_endpoint": "a"}, "nodes", "'3:2'"),
        ("two", {"rdzv_endpoint": "a"}, "nodes", "'two'"),
        ("2", {}, "rdzv_endpoint", "needs the one"),
        ("2", {"rdzv_endpoint": "a", "master_addr": "b"}, "rdzv_endpoint", "same thing"),
        ("2", {"rdzv_endpoint": "a b"}, "rdzv_endpoint", "'a b'"),
        ("2", {"rdzv_endpoint": "a:0"}, "rdzv_endpoint", "'a:0'"),
        ("2", {"rdzv_endpoint": "a:65535"}, "rdzv_endpoint", "'a:65535'"),
        ("2", {"rdzv_endpoint": "a", "nodes_wait_s": "long"}, "nodes_wait_s", "'long'"),
        ("2", {"rdzv_endpoint": "a", "nodes_wait_s": "nan"}, "nodes_wait_s", "nan"),
        ("2", {"rdzv_endpoint": "a", "nodes_wait_s": -1}, "nodes_wait_s", "-1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field_and_value(
    nodes: str, values: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        NodeJob.from_values(nodes, values)
    assert raised.value.field == field


def test_workers_read_what_their_agent_was_started_with() -> None:
    job = NodeJob(NodeCount(1, 2), "node1", nic="eth0", address="10.0.0.1", is_host=True, session="abc")
    assert NodeJob.from_env(job.to_env()) == job
    assert NodeJob.from_env({}) is None
    ports = (job.desk_port, job.meeting_port, job.listen_port, job.store_port)
    assert ports == (29_401, 29_402, 29_403, 29_404)


@pytest.mark.parametrize("text", ["{", "[]", '{"count": {"least": 0, "most": 1}, "host": "a"}', '{"other": 1}'])
def test_a_damaged_variable_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=ENV_NODE):
        NodeJob.from_env({ENV_NODE: text})
