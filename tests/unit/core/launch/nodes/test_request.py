"""What `--nodes` and its companions, a config file or the window ask for."""

from __future__ import annotations

from typing import Any

import pytest

from core.cli.parser import parse
from core.config.node_count import NodeCount
from core.errors import ConfigError
from core.launch.nodes.request import NodesRequest


@pytest.mark.parametrize(
    ("nodes", "values", "wanted"),
    [
        ("2", {"rdzv_endpoint": "node1"}, (2, 2, "node1:29400", "", 600.0)),
        ("1:4", {"rdzv_endpoint": "10.0.0.1:4000", "nic": "eth0"}, (1, 4, "10.0.0.1:4000", "eth0", 600.0)),
        ("2", {"master_addr": "node1", "nodes_wait_s": "8"}, (2, 2, "node1:29400", "", 8.0)),
        ("2", {"master_addr": "node1", "master_port": 4000, "nic": None}, (2, 2, "node1:4000", "", 600.0)),
    ],
)
def test_values_are_read_and_come_back_from_the_flags(
    nodes: str, values: dict[str, Any], wanted: tuple[int, int, str, str, float]
) -> None:
    request = NodesRequest.from_values(nodes, values)
    assert request is not None
    job = request.job(name="here")
    assert (job.min_nodes, job.max_nodes, job.endpoint, request.nic, request.wait_s) == wanted
    arguments = parse(["train", *request.flags])
    assert NodesRequest.from_values(arguments.nodes, vars(arguments)) == request


def test_one_machine_is_no_run_on_several() -> None:
    assert NodesRequest.from_values(None, {"nic": "eth0"}) is None
    assert NodesRequest.from_values("1", {}) is None
    with pytest.raises(ConfigError, match="One machine alone"):
        NodesRequest(NodeCount(1, 1), "node1")


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
        NodesRequest.from_values(nodes, values)
    assert raised.value.field == field
