"""The host's loop with real sockets: what comes first while many ranks are ready. Orders, not times."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import pytest

from core.protocol.codec import encode
from core.protocol.fair_loop import RANKS_A_ROUND, fair_loop
from core.protocol.messages import RANK_PROTOCOL, Hello, Message, StopRequest
from core.protocol.server import Connection, Listener

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="on Windows no host has ranks of several machines")

CLIENT, RANK = "client token", "rank token"
RANKS: Final = 200
ROUNDS: Final = 8
"""At most so many until a new client is welcomed: it is accepted, set up and read, each in a round of its own."""
LIMIT_S: Final = 10.0


class Crowd:
    """A listener, and ranks that always have a line for it. Also its `ListenerEvents`."""

    def __init__(self) -> None:
        self.listener = Listener("a run", CLIENT, self)
        self.listener.expect_ranks(1, RANKS, RANK)
        self.log: list[int | str] = []
        self.welcomed = 0
        self.on_line: Callable[[], None] = lambda: None
        self._port = 0
        self.ranks: list[socket.socket] = []
        self.clients: list[socket.socket] = []

    async def open(self) -> None:
        self._port = await self.listener.start()
        for rank in range(RANKS):
            self.ranks.append(self._connect(Hello("rank", RANK, RANK_PROTOCOL, rank, 1)))
        await self.until(lambda: self.welcomed == RANKS)

    def speak(self, rank: int) -> None:
        line = {"event": "step", "ts": 1.0, "rank": rank, "attempt": 1}
        self.ranks[rank].sendall(json.dumps(line).encode() + b"\n")

    def visit(self) -> None:
        """A client comes, which the system accepts for a listener that is busy."""
        self.clients.append(self._connect(Hello("client", CLIENT)))

    def _connect(self, hello: Hello) -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", self._port), LIMIT_S)
        peer.sendall(encode(hello))
        return peer

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not reached():
                await asyncio.sleep(0)

    async def close(self) -> None:
        for peer in [*self.ranks, *self.clients]:
            peer.close()
        await self.listener.close()

    # ListenerEvents

    def connected(self, connection: Connection) -> None:
        assert connection.hello is not None
        self.welcomed += 1
        if connection.hello.role == "client":
            self.log.append("welcome")

    def message_received(self, _connection: Connection, message: Message) -> None:
        assert isinstance(message, StopRequest)
        self.log.append("stop")

    def lines_received(self, connection: Connection, _lines: list[bytes], _parsed: list[dict[str, Any]]) -> None:
        assert connection.hello is not None
        self.log.append(connection.hello.rank)
        self.speak(connection.hello.rank)
        self.on_line()

    def closed(self, connection: Connection) -> None:
        pass


@pytest.fixture
def crowd() -> Iterator[Callable[[Callable[[Crowd], Awaitable[None]]], None]]:
    """Runs a scenario with a crowd."""

    async def play(scenario: Callable[[Crowd], Awaitable[None]]) -> None:
        made = Crowd()
        try:
            await made.open()
            await scenario(made)
        finally:
            await made.close()

    with asyncio.Runner(loop_factory=fair_loop) as runner:
        yield lambda scenario: runner.run(play(scenario))


Play = Callable[[Callable[[Crowd], Awaitable[None]]], None]


def test_a_new_client_is_welcomed_before_all_ready_ranks_are_heard(crowd: Play) -> None:
    async def scenario(here: Crowd) -> None:
        _at_line(here, RANKS, here.visit)
        _all_speak(here)
        await here.until(lambda: "welcome" in here.log)
        assert here.log.index("welcome") - RANKS <= ROUNDS * RANKS_A_ROUND < RANKS

    crowd(scenario)


def test_each_rank_has_its_turn_before_one_has_many(crowd: Play) -> None:
    async def scenario(here: Crowd) -> None:
        _all_speak(here)
        await here.until(lambda: len(here.log) >= 5 * RANKS)
        heard = Counter(here.log[: 5 * RANKS])
        assert len(heard) == RANKS and max(heard.values()) - min(heard.values()) <= 2

    crowd(scenario)


def test_a_client_with_the_number_of_a_ranks_socket_still_comes_first(crowd: Play) -> None:
    async def scenario(here: Crowd) -> None:
        for peer in here.ranks[:20]:
            peer.close()
        await here.until(lambda: len(here.listener._ranks) == RANKS - 20)
        for _ in range(20):  # theirs and the listener's take the numbers that have become free
            here.visit()
        await here.until(lambda: here.log.count("welcome") == 20)
        here.log.clear()
        _at_line(here, RANKS, lambda: [peer.sendall(encode(StopRequest())) for peer in here.clients])
        _all_speak(here, first=20)
        await here.until(lambda: here.log.count("stop") == 20)
        last = max(at for at, what in enumerate(here.log) if what == "stop")
        assert last - RANKS <= 20 + 2 * RANKS_A_ROUND

    crowd(scenario)


def test_paused_ranks_are_not_heard_and_clients_are(crowd: Play) -> None:
    async def scenario(here: Crowd) -> None:
        here.listener.pause_ranks()
        _all_speak(here)
        here.visit()
        await here.until(lambda: "welcome" in here.log)
        assert here.log == ["welcome"]
        here.listener.resume_ranks()
        await here.until(lambda: set(range(RANKS)) <= set(here.log))

    crowd(scenario)


def test_what_a_rank_does_not_read_is_sent_when_it_does(crowd: Play) -> None:
    async def scenario(here: Crowd) -> None:
        [connection] = [one for one in here.listener._ranks if one.hello is not None and one.hello.rank == 0]
        sent = b"x" * 1_000 + b"\n"
        while not connection.unread_bytes:
            connection.send_line(sent)
        here.ranks[0].setblocking(False)

        def take() -> bool:
            with contextlib.suppress(BlockingIOError):
                here.ranks[0].recv(1 << 20)
            return not connection.unread_bytes

        await here.until(take)

    crowd(scenario)


def _all_speak(here: Crowd, first: int = 0) -> None:
    for rank in range(first, RANKS):
        here.speak(rank)


def _at_line(here: Crowd, count: int, act: Callable[[], Any]) -> None:
    def on_line() -> None:
        if len(here.log) == count:
            act()

    here.on_line = on_line
