"""What the workers of a machine are told."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.launch.nodes.job import ENV_NODE, NodeJob


def test_workers_read_what_their_agent_was_started_with() -> None:
    job = NodeJob(1, 2, "node1", 29_400, nic="eth0", address="10.0.0.1", is_host=True, session="abc")
    assert NodeJob.from_env(job.to_env()) == job
    assert NodeJob.from_env({}) is None
    assert job.nodes == "1:2"
    ports = (job.desk_port, job.meeting_port, job.listen_port, job.store_port)
    assert ports == (29_401, 29_402, 29_403, 29_404)


@pytest.mark.parametrize("text", ["{", "[]", '{"min_nodes": 0}', '{"other": 1}'])
def test_a_damaged_variable_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=ENV_NODE):
        NodeJob.from_env({ENV_NODE: text})
