"""The channel between two machines: what strangers learn, and what a line that was changed does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from core.launch.nodes.channel import Channel, ChannelError, Server
from core.machine.platform import free_port

KEY, LOOPBACK = "1" * 64, "127.0.0.1"


class Echo:
    """Answers with what it was asked."""

    def answer(self, request: dict[str, object]) -> dict[str, object]:
        return dict(request)

    def closed(self) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """That of a server that answers with what it was asked."""
    found = free_port()
    server = Server(LOOPBACK, found, KEY, lambda _: Echo())  # type: ignore[arg-type,return-value]
    yield found
    server.close()


def test_a_port_that_is_closed_is_named() -> None:
    port = free_port()
    with pytest.raises(ChannelError, match=f"127.0.0.1, port {port}") as raised:
        Channel(LOOPBACK, port, KEY)
    assert raised.value.why == "closed"


def test_lines_that_were_changed_or_repeated_end_the_connection(port: int) -> None:
    channel = Channel(LOOPBACK, port, KEY)
    assert channel.ask({"a": 1}) == {"a": 1}
    channel._lines._socket.sendall(b'0000 {"a": 2}\n')
    with pytest.raises(ChannelError, match="was lost"):
        channel.ask({"a": 3})
    channel.close()


def test_strangers_learn_nothing_and_cost_a_connection_each(port: int) -> None:
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b"x" * 5000 + b"\n", os.urandom(64) + b"\n"):
        with socket.create_connection((LOOPBACK, port), timeout=5) as wire:
            wire.settimeout(5)
            wire.sendall(sent)
            answered = b""
            try:
                while data := wire.recv(4096):
                    answered += data
            except ConnectionError:
                pass
        assert b"proof" not in answered and KEY.encode() not in answered
