"""Which machines are there, as a value that is printed and read."""

from __future__ import annotations

import json

from core.launch.nodes.status import NodesStatus, NodeStatus

HERE = NodeStatus("node1", "10.0.0.1", "host", ("CPU 0",))
REFUSED = NodeStatus("node2", "10.0.0.2", "refused", error={"cause": "PyTorch differs: 2.6 on node2, 2.7 on node1."})


def test_it_comes_back_from_its_line() -> None:
    status = NodesStatus(1, 2, (HERE, REFUSED), folder="/runs", line=("rankdeck", "train"), key_file="/key")
    assert NodesStatus.from_event(json.loads(json.dumps(status.to_event()))) == status


def test_other_lines_and_damaged_ones_are_none() -> None:
    assert NodesStatus.from_event({"event": "step", "least": 1, "most": 2}) is None
    assert NodesStatus.from_event({"event": "nodes", "least": "two"}) is None


def test_refused_machines_are_not_counted_and_the_sentence_says_why() -> None:
    status = NodesStatus(2, 2, (HERE, REFUSED))
    assert status.here == 1
    assert status.text == ("1 of 2 nodes are here. 10.0.0.2 was refused: PyTorch differs: 2.6 on node2, 2.7 on node1.")
    assert NodesStatus(1, 2, (HERE,)).text == "1 of 1 to 2 nodes are here."
