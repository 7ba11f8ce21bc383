"""Texts of a run on several machines."""

from __future__ import annotations

import pytest

from app.state.nodes_text import head_text, key_text, line_text, node_text, waiting_text, waiting_title
from core.launch.nodes.status import NodesStatus, NodeStatus

HERE = NodeStatus("node1", "10.0.0.1", "host", ("CPU 0", "CPU 1"))
JOINED = NodeStatus("node2", "10.0.0.2", "joined", ("GPU 0 · H100",))


def test_rows_say_what_each_machine_brings() -> None:
    assert (node_text(JOINED), node_text(HERE)) == ("GPU 0 · H100", "CPU 0, CPU 1")


def test_a_refused_machine_says_why_and_what_to_do_without_a_flag() -> None:
    error = {
        "title": "t",
        "cause": "It is not shared.",
        "next_step": "Share it: --runs-dir PATH",
        "window_step": "Share it.",
    }
    assert node_text(NodeStatus("", "10.0.0.3", "refused", error=error)) == "It is not shared. Share it."


def test_one_that_has_left_is_still_named() -> None:
    assert "Start its command again" in node_text(NodeStatus("node2", "10.0.0.2", "left"))


@pytest.mark.parametrize(
    ("least", "nodes", "title", "text"),
    [
        (2, (HERE,), "1 of 2 machines", "Waiting for 1 more machine."),
        (1, (HERE,), "1 of 2 machines", "Enough are here."),
        (2, (HERE, JOINED), "2 of 2 machines", "Enough are here."),
    ],
)
def test_how_many_are_there(least: int, nodes: tuple[NodeStatus, ...], title: str, text: str) -> None:
    status = NodesStatus(least, 2, nodes)
    assert waiting_title(status) == title and waiting_text(status).startswith(text)
    assert "Starting" in waiting_text(NodesStatus(2, 2, nodes, phase="starting"))


def test_the_line_is_for_a_shell() -> None:
    status = NodesStatus(2, 2, folder="/my runs", line=("rankdeck", "train", "--lr", "1"), key_file="/home/me/k")
    assert line_text(status) == "cd '/my runs' && rankdeck train --lr 1"
    assert "/home/me/k" in key_text(status)


def test_a_folded_group_says_what_is_in_it() -> None:
    assert head_text("", "eth0") == ""
    assert head_text("2", "eth0") == "2 machines · eth0"
    assert head_text("1:4", "") == "1 to 4 machines"
