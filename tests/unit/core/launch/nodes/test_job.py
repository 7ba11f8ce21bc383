"""What `--nodes` and its companions ask for."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.launch.nodes.job import ENV_NODE, NodeJob, asked_job


@pytest.mark.parametrize(
    ("nodes", "endpoint", "address", "port", "wanted"),
    [
        ("2", "node1", None, None, (2, 2, "node1:29400")),
        ("1:4", "10.0.0.1:4000", None, None, (1, 4, "10.0.0.1:4000")),
        ("2", None, "node1", None, (2, 2, "node1:29400")),
        ("2", None, "node1", "4000", (2, 2, "node1:4000")),
    ],
)
def test_the_flags_are_read(
    nodes: str, endpoint: str | None, address: str | None, port: str | None, wanted: tuple[int, int, str]
) -> None:
    job = asked_job(nodes, endpoint, address, port)
    assert (job.min_nodes, job.max_nodes, job.endpoint) == wanted


@pytest.mark.parametrize(
    ("nodes", "endpoint", "address", "words"),
    [
        ("0", "a", None, "'0'"),
        ("1", "a", None, "'1'"),
        ("3:2", "a", None, "'3:2'"),
        ("two", "a", None, "'two'"),
        ("2", None, None, "needs the machine"),
        ("2", "a", "b", "same thing"),
        ("2", "a b", None, "'a b'"),
        ("2", "a:0", None, "'a:0'"),
        ("2", "a:65535", None, "'a:65535'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_value(
    nodes: str, endpoint: str | None, address: str | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        asked_job(nodes, endpoint, address, None)


@pytest.mark.parametrize(("nodes", "fewest"), [("2", 1), ("1:4", 1), ("2:4", 2), ("3:3", 3)])
def test_a_number_alone_continues_with_what_is_left(nodes: str, fewest: int) -> None:
    job = asked_job(nodes, "node1", None, None)
    assert (job.fewest_nodes, job.nodes) == (fewest, nodes)


def test_workers_read_what_their_agent_was_started_with() -> None:
    job = NodeJob(1, 2, "node1", 29_400, nic="eth0", address="10.0.0.1", is_host=True, session="abc")
    assert NodeJob.from_env(job.to_env()) == job
    assert NodeJob.from_env({}) is None
    ports = (job.desk_port, job.meeting_port, job.listen_port, job.store_port)
    assert ports == (29_401, 29_402, 29_403, 29_404)


@pytest.mark.parametrize("text", ["{", "[]", '{"min_nodes": 0}', '{"other": 1}'])
def test_a_damaged_variable_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=ENV_NODE):
        NodeJob.from_env({ENV_NODE: text})
