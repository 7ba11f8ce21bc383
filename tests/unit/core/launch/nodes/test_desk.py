"""The desk: machines check in over real connections, and each is told why it is refused."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.launch.nodes import desk as desk_module
from core.launch.nodes.channel import Channel, ChannelError
from core.launch.nodes.desk import CheckIn, Desk, NodeFacts, difference
from core.machine.platform import free_port
from tests.helpers.launched import wait

FOREVER_S = 60.0
GONE = RankdeckError("node3 did not come back.", "Resume it.", title="A machine did not come back")
KEY, LOOPBACK = "1" * 64, "127.0.0.1"
VALUES = {"rankdeck": "0.9", "torch": "2.7", "python": "3.11", "interpreter": "/p", "package": "/r", "flags": "f"}
HERE = NodeFacts("node1", {**VALUES, "nodes": "2:2"})
THERE = NodeFacts("node2", HERE.values)


class Open:
    """A desk on loopback, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.lost: list[tuple[str, int]] = []
        self.port = free_port()
        self.desk = Desk(
            HERE,
            folder,
            2,
            2,
            self.said.append,
            lambda name, left: self.lost.append((name, left)),
        )
        self.desk.open(LOOPBACK, self.port, KEY)

    def check_in(self, facts: NodeFacts = THERE, key: str = KEY) -> CheckIn:
        return CheckIn(Channel(LOOPBACK, self.port, key), facts)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made = Open(tmp_path)
    yield made
    made.desk.close()
    assert list(tmp_path.iterdir()) == [], "nothing is left in the folder of runs"


def test_machines_are_counted_in_and_start_together(opened: Open) -> None:
    assert not opened.desk.is_complete and opened.desk.missing() == "1 of 2 nodes are here."
    visit = opened.check_in()
    assert opened.said == ["node2 (127.0.0.1) is here. 2 of 2 nodes are here."]
    assert visit.poll() == (True, "2 of 2 nodes are here.")
    assert opened.desk.is_complete and visit.job == opened.desk.job
    visit.close()


def test_a_lost_machine_is_named_until_it_is_back_and_one_whose_part_is_over_is_not(opened: Open) -> None:
    visit = opened.check_in()
    assert visit.poll()[0]
    visit.close()
    wait(lambda: opened.lost, "the loss")
    assert opened.lost == [("node2", 1)]
    assert opened.desk.lacks(2) == ["node2"] and opened.desk.lacks(1) == [], "one is enough"
    again = opened.check_in()
    assert again.poll()[0], "it is taken back at once"
    assert opened.desk.lacks(2) == []
    again.leave()
    again.close()
    wait(lambda: opened.desk.missing().startswith("1 of 2"), "its end")
    assert opened.lost == [("node2", 1)] and opened.desk.lacks(2) == []
    assert opened.said == ["node2 (127.0.0.1) is here. 2 of 2 nodes are here."] * 2


def test_machines_hear_why_the_run_has_ended(opened: Open) -> None:
    visit = opened.check_in()
    assert not opened.desk.end(GONE, limit_s=0.05), "it has not asked yet"
    with pytest.raises(RankdeckError) as raised:
        visit.poll()
    assert raised.value.as_dict() == {
        "title": "A machine did not come back",
        "cause": "node3 did not come back.",
        "next_step": "Resume it.",
    }
    assert not isinstance(raised.value, ChannelError), "it does not look for the host"
    assert opened.desk.end(GONE, FOREVER_S), "it has acknowledged that"
    visit.close()
    assert opened.lost == []


def test_a_run_that_ends_does_not_wait_for_machines_that_have_not_joined_or_are_gone(opened: Open) -> None:
    with pytest.raises(RankdeckError, match="PyTorch differs"):
        opened.check_in(NodeFacts("node2", {**HERE.values, "torch": "2.6"}))
    assert opened.desk.end(GONE, FOREVER_S), "none has joined"
    visit = opened.check_in()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(opened.desk.end, GONE, FOREVER_S)
        visit.close()
        assert waiting.result(FOREVER_S), "it does not need to be told any more"


@pytest.mark.parametrize(
    ("values", "clock", "title", "words"),
    [
        ({"rankdeck": "1.0"}, 0.0, "The nodes differ", "Rankdeck differs: 1.0 on node2, 0.9 on node1"),
        ({"torch": "2.6"}, 0.0, "The nodes differ", "PyTorch differs: 2.6 on node2, 2.7 on node1"),
        ({"nodes": "1:2"}, 0.0, "The nodes differ", "number of machines differs: 1:2 on node2, 2:2 on node1"),
        ({"flags": "g"}, 0.0, "The nodes differ", "command and its folder differs."),
        ({}, 99.0, "The clocks differ", "clock of node2 is 99 s ahead of that of node1."),
        ({}, -90.0, "The clocks differ", "clock of node2 is 90 s behind that of node1."),
    ],
)
def test_what_differs_is_named_with_both_values(values: dict[str, str], clock: float, title: str, words: str) -> None:
    node = NodeFacts("node2", {**HERE.values, **values}, HERE.clock + clock)
    error = difference(HERE, node)
    assert error is not None and error.title == title and words in error.cause
    assert "--" not in error.window_step


def test_a_refused_one_stays_in_sight_with_the_reason(opened: Open) -> None:
    node = NodeFacts("node2", {**HERE.values, "torch": "2.6"})
    for _ in range(2):
        with pytest.raises(RankdeckError, match="PyTorch differs"):
            opened.check_in(node)
    assert len(opened.said) == 1 and "PyTorch differs" in opened.said[0], "told once"
    assert "PyTorch differs" in opened.desk.missing(), "both machines say why"
    opened.check_in().close()
    assert "refused" not in opened.desk.missing(), "it has come after all"


def test_a_folder_that_is_not_shared_is_refused(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "_SEEN_S", 0.3)
    (tmp_path / opened.desk.probe).unlink()  # as on a machine that has another folder at this path
    with pytest.raises(RankdeckError) as raised:
        opened.check_in()
    assert raised.value.title == "The folder of runs is not shared"


def test_another_key_is_refused_on_both_sides_with_the_file_to_copy(opened: Open) -> None:
    with pytest.raises(ChannelError) as raised:
        opened.check_in(key="2" * 64)
    assert raised.value.why == "key"
    wait(lambda: opened.said, "the desk, which finds out after its caller")
    assert "another key" in opened.said[0] and "nodes.key" in opened.said[0]
