"""The desk: machines check in over real connections, and each is told why it is refused."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.launch.nodes.channel import Channel, ChannelError
from core.launch.nodes.desk import CheckIn, Desk, NodeFacts, difference
from tests.helpers.launched import wait

KEY = "1" * 64
VALUES = {"rankdeck": "0.9", "torch": "2.7", "python": "3.11", "interpreter": "/p", "package": "/r", "flags": "f"}
HOST = NodeFacts("node1", {**VALUES, "nodes": "2:2"}, devices=("CPU 0",))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def port() -> int:
    return _free_port()


@pytest.fixture
def changes() -> list[str]:
    """What the desk has told."""
    return []


@pytest.fixture
def desk(tmp_path: Path, port: int, changes: list[str]) -> Iterator[Desk]:
    made = Desk(HOST, tmp_path, 2, 2, lambda _: None, lambda: changes.append(made.status().text))
    made.open("127.0.0.1", port, KEY)
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == [], "nothing is left in the folder of runs"


def test_one_that_agrees_is_counted_in_with_its_devices_and_out_again(
    desk: Desk, port: int, changes: list[str]
) -> None:
    node = dataclasses.replace(HOST, name="node2", devices=("GPU 0",))
    visit = CheckIn(Channel("127.0.0.1", port, KEY), node)
    own, joined = desk.status().nodes
    assert (own.state, own.devices, joined.state) == ("host", ("CPU 0",), "joined")
    assert (joined.name, joined.devices) == ("node2", ("GPU 0",))
    assert changes == ["2 of 2 nodes are here."]
    visit.close()


@pytest.mark.parametrize(
    ("values", "clock", "title", "words"),
    [
        ({"rankdeck": "1.0"}, 0.0, "The nodes differ", "Rankdeck differs: 1.0 on node2, 0.9 on node1"),
        ({"torch": "2.6"}, 0.0, "The nodes differ", "PyTorch differs: 2.6 on node2, 2.7 on node1"),
        ({"nodes": "2:3"}, 0.0, "The nodes differ", "number of machines differs: 2:3 on node2"),
        ({"flags": "g"}, 0.0, "The nodes differ", "command and its folder differs."),
        ({}, 99.0, "The clocks differ", "clock of node2 is 99 s ahead"),
    ],
)
def test_what_differs_is_named_with_both_values(values: dict[str, str], clock: float, title: str, words: str) -> None:
    node = NodeFacts("node2", {**HOST.values, **values}, HOST.clock + clock)
    error = difference(HOST, node)
    assert error is not None and error.title == title and words in error.cause
    assert "--" not in error.window_step


def test_a_refused_one_stays_in_sight_with_the_reason(desk: Desk, port: int, changes: list[str]) -> None:
    node = NodeFacts("node2", {**HOST.values, "torch": "2.6"})
    for _ in range(2):
        with pytest.raises(RankdeckError, match="PyTorch differs"):
            CheckIn(Channel("127.0.0.1", port, KEY), node)
    refused = desk.status().nodes[1]
    assert refused.state == "refused" and refused.error is not None
    assert "PyTorch differs" in refused.error["cause"] and len(changes) == 1, "told once"
    CheckIn(Channel("127.0.0.1", port, KEY), dataclasses.replace(HOST, name="node2")).close()
    assert not any(node.state == "refused" for node in desk.status().nodes), "it has come after all"


def test_another_key_is_refused_with_the_file_to_copy(desk: Desk, port: int) -> None:
    with pytest.raises(ChannelError):
        CheckIn(Channel("127.0.0.1", port, "2" * 64), HOST)
    wait(lambda: len(desk.status().nodes) == 2, "the desk, which finds out after its caller")
    [_, refused] = desk.status().nodes
    assert refused.error is not None and "nodes.key" in refused.error["next_step"]
