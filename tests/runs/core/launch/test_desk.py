"""Machines that check in at the desk over a real connection, and those that are refused."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import RankdeckError
from core.launch.nodes import desk as desk_module
from core.launch.nodes.channel import Channel, ChannelError, Server
from core.launch.nodes.desk import CheckIn, Desk, NodeFacts, difference
from core.launch.nodes.key import KEY_FILE, key_file, make_key, read_key
from core.machine.platform import free_port

KEY, HOST = "1" * 64, "127.0.0.1"
SAME = {"rankdeck": "0.1.0", "torch": "2.13.0", "python": "3.11.7", "flags": "a", "nodes": "2:2"}
HERE, THERE = NodeFacts("node1", SAME), NodeFacts("node2", SAME)


class Open:
    """A desk on loopback, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.lost: list[tuple[str, int]] = []
        self.port = free_port()
        self.desk = Desk(
            HERE, folder, 2, 2, self.said.append, on_loss=lambda name, left: self.lost.append((name, left))
        )
        self.desk.open(HOST, self.port, KEY)

    def check_in(self, facts: NodeFacts = THERE, key: str = KEY) -> CheckIn:
        return CheckIn(Channel(HOST, self.port, key), facts)


def _wait(reached: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made = Open(tmp_path)
    yield made
    made.desk.close()
    assert list(tmp_path.iterdir()) == []


def test_machines_are_counted_in_and_start_together(opened: Open) -> None:
    assert not opened.desk.is_complete and opened.desk.missing() == "1 of 2 nodes are here."
    visit = opened.check_in()
    assert visit.poll() == (True, "2 of 2 nodes are here.")
    assert opened.desk.is_complete and visit.job == opened.desk.job
    visit.close()
    _wait(lambda: opened.lost)
    assert opened.lost == [("node2", 1)], "it was lost while the run trained"
    again = opened.check_in()
    assert again.poll()[0], "it is taken back at once"
    again.leave()
    again.close()
    _wait(lambda: opened.desk.missing().startswith("1 of 2"))
    assert opened.lost == [("node2", 1)], "its part was over"
    assert opened.said == ["node2 (127.0.0.1) is here. 2 of 2 nodes are here."] * 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("torch", "2.12.0", "PyTorch differs: 2.12.0 on node2, 2.13.0 on node1"),
        ("rankdeck", "0.2.0", "Rankdeck differs: 0.2.0 on node2, 0.1.0 on node1"),
        ("flags", "b", "The command and its folder differs"),
        ("nodes", "1:2", "The number of machines differs: 1:2 on node2, 2:2 on node1"),
    ],
)
def test_what_must_be_the_same_is_compared(opened: Open, name: str, value: str, words: str) -> None:
    with pytest.raises(RankdeckError) as raised:
        opened.check_in(dataclasses.replace(THERE, values={**SAME, name: value}))
    assert words in raised.value.cause
    assert words in opened.desk.missing(), "both machines say why"


def test_clocks_that_are_apart_are_refused() -> None:
    now = time.time()
    error = difference(NodeFacts("node1", SAME, now), NodeFacts("node2", SAME, now - 90))
    assert error is not None and error.cause == "The clock of node2 is 90 s behind that of node1."


def test_a_folder_that_is_not_shared_is_refused(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "_SEEN_S", 0.3)
    (tmp_path / opened.desk.probe).unlink()  # as on a machine that has another folder at this path
    with pytest.raises(RankdeckError) as raised:
        opened.check_in()
    assert raised.value.title == "The folder of runs is not shared"


def test_another_key_is_refused_on_both_sides(opened: Open) -> None:
    with pytest.raises(ChannelError) as raised:
        opened.check_in(key="2" * 64)
    assert raised.value.why == "key"
    _wait(lambda: "another key" in opened.desk.missing())


def test_a_port_that_is_closed_is_named() -> None:
    port = free_port()
    with pytest.raises(ChannelError, match=f"127.0.0.1, port {port}") as raised:
        Channel(HOST, port, KEY)
    assert raised.value.why == "closed"


class Echo:
    """Answers with what it was asked."""

    def answer(self, request: dict[str, object]) -> dict[str, object]:
        return dict(request)

    def closed(self) -> None:
        pass


def test_lines_that_were_changed_or_repeated_end_the_connection() -> None:
    port = free_port()
    server = Server(HOST, port, KEY, lambda _: Echo())  # type: ignore[arg-type,return-value]
    try:
        channel = Channel(HOST, port, KEY)
        assert channel.ask({"a": 1}) == {"a": 1}
        line = b'0000 {"a": 2}\n'
        channel._lines._socket.sendall(line)
        with pytest.raises(ChannelError, match="was lost"):
            channel.ask({"a": 3})
        channel.close()
    finally:
        server.close()


def test_strangers_learn_nothing_and_cost_a_connection_each() -> None:
    port = free_port()
    server = Server(HOST, port, KEY, lambda _: Echo())  # type: ignore[arg-type,return-value]
    try:
        for sent in (b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b"x" * 5000 + b"\n", os.urandom(64) + b"\n"):
            with socket.create_connection((HOST, port), timeout=5) as wire:
                wire.settimeout(5)
                wire.sendall(sent)
                answered = b""
                try:
                    while data := wire.recv(4096):
                        answered += data
                except ConnectionError:
                    pass
            assert b"proof" not in answered and KEY.encode() not in answered
    finally:
        server.close()


def test_the_key_is_made_once_and_kept_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.launch.nodes.key.data_folder", lambda: tmp_path)
    with pytest.raises(RankdeckError, match="There is no key"):
        read_key()
    key = make_key()
    assert (key, len(key)) == (make_key(), 64) and key_file().name == KEY_FILE
    if os.name == "posix":
        assert key_file().stat().st_mode & 0o077 == 0
    key_file().write_text("short", encoding="utf-8")
    with pytest.raises(RankdeckError, match="is damaged"):
        make_key()
