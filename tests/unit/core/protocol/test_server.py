"""The listener with real sockets: who is let in, what is passed on, and what a stranger can do (nothing)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from core.protocol import codec, messages
from core.protocol.codec import encode
from core.protocol.messages import RANK_PROTOCOL, Hello, Message, Phase, StopRequest
from core.protocol.server import MAX_HELLO_BYTES, MAX_STRANGERS, Connection, Listener

pytestmark = pytest.mark.windows

CLIENT, RANK = "client token", "rank token"
LIMIT_S: Final = 10.0


@dataclass
class Heard:
    """What a listener has told."""

    lines: list[bytes] = field(default_factory=list)
    parsed: list[dict[str, Any]] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def connected(self, connection: Connection) -> None:
        self.log.append(str(connection))

    def message_received(self, connection: Connection, message: Message) -> None:
        del connection
        self.log.append(message)

    def lines_received(self, connection: Connection, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        del connection
        self.lines += lines
        self.parsed += parsed
        self.log.append(len(lines))

    def closed(self, connection: Connection) -> None:
        self.gone.append(str(connection))


@dataclass
class Peer:
    """One end of a connection to the listener."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self.reader.readline(), LIMIT_S)
        found: dict[str, Any] = json.loads(line)
        return found

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self.reader.read(), LIMIT_S)


class Place:
    """A listener that expects two ranks of attempt 1, and peers for it."""

    def __init__(self, hello_timeout_s: float) -> None:
        self.heard = Heard()
        self.listener = Listener("a run", CLIENT, self.heard, hello_timeout_s)
        self._writers: list[asyncio.StreamWriter] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, hello_timeout_s: float = 5.0) -> AsyncIterator[Place]:
        place = cls(hello_timeout_s)
        place.port = await place.listener.start()
        place.listener.expect_ranks(1, 2, RANK)
        try:
            yield place
        finally:
            for writer in place._writers:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
            await place.listener.close()

    port: int

    async def peer(self) -> Peer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return Peer(reader, writer)

    async def hello(self, hello: Hello) -> Peer:
        peer = await self.peer()
        await peer.say(encode(hello))
        return peer

    async def rank(self, rank: int = 0, attempt: int = 1) -> Peer:
        peer = await self.hello(Hello("rank", RANK, RANK_PROTOCOL, rank=rank, attempt=attempt))
        assert (await peer.answer())["type"] == "welcome"
        return peer

    async def until(self, reached: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + LIMIT_S
        while not reached():
            assert asyncio.get_running_loop().time() < deadline, self.heard
            await asyncio.sleep(0.005)

    async def still_works(self) -> None:
        peer = await self.hello(Hello("client", CLIENT))
        assert (await peer.answer())["type"] == "welcome"


def run(test: Callable[[Place], Awaitable[None]], hello_timeout_s: float = 5.0) -> None:
    async def inside() -> None:
        async with Place.open(hello_timeout_s) as place:
            await test(place)

    asyncio.run(inside())


def line(rank: int = 0, attempt: int = 1, **fields: Any) -> bytes:
    return json.dumps({"ts": 1.5, "event": "step", "rank": rank, "attempt": attempt, **fields}).encode() + b"\n"


REFUSED = [
    (Hello("client", "wrong"), "token"),
    (Hello("client", RANK), "token"),
    (Hello("rank", CLIENT, RANK_PROTOCOL, rank=0, attempt=1), "token"),
    (Hello("rank", "", RANK_PROTOCOL, rank=0, attempt=1), "token"),
    (Hello("rank", "schlüssel", RANK_PROTOCOL, rank=0, attempt=1), "token"),
    (Hello("rank", RANK, RANK_PROTOCOL, rank=2, attempt=1), "No rank 2"),
    (Hello("rank", RANK, RANK_PROTOCOL, rank=-1, attempt=1), "No rank -1"),
    (Hello("rank", RANK, RANK_PROTOCOL, rank=0, attempt=2), "attempt 2"),
    (Hello("client", CLIENT, protocol=7), "Protocol mismatch: client 7, host 1."),
    (Hello("rank", RANK, 1, rank=0, attempt=1), "Protocol mismatch: rank 1, host 3."),
]


@pytest.mark.parametrize(("hello", "words"), REFUSED)
def test_who_does_not_know_the_secret_is_told_why_and_closed(hello: Hello, words: str) -> None:
    async def test(place: Place) -> None:
        peer = await place.hello(hello)
        answer = await peer.answer()
        assert answer["type"] == "refused" and words in answer["reason"]
        assert await peer.rest() == b""
        assert place.heard.log == []

    run(test)


FIRST_LINES = [
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"\x00\xff\xfe\x80\n",
    b"[]\n",
    b"\n",
    b'{"type":"hello"}\n',
    b'{"type":"hello","protocol":1,"role":"king","token":"x"}\n',
    b'{"type":"phase","name":"x"}\n',
    b"[" * 60_000 + b"\n",
    b"x" * (MAX_HELLO_BYTES + 1),
    # A JSON parser that is given bytes guesses their encoding; the protocol leaves nothing to guess.
    encode(Hello("client", CLIENT)).decode().strip().encode("utf-16") + b"\n",
    encode(Hello("client", CLIENT)).decode().encode("utf-8-sig"),
]


@pytest.mark.parametrize("first", FIRST_LINES, ids=range(len(FIRST_LINES)))
def test_what_is_no_hello_is_refused_and_nothing_breaks(first: bytes) -> None:
    async def test(place: Place) -> None:
        peer = await place.peer()
        await peer.say(first)
        assert (await peer.answer())["type"] == "refused"
        assert await peer.rest() == b""
        await place.still_works()

    run(test)


def test_a_peer_that_says_nothing_or_only_half_a_line_is_closed_after_the_limit() -> None:
    async def test(place: Place) -> None:
        silent, slow = await place.peer(), await place.peer()
        await slow.say(b'{"type":')
        for peer in (silent, slow):
            assert "No hello" in (await peer.answer())["reason"]
            assert await peer.rest() == b""

    run(test, hello_timeout_s=0.1)


def test_a_flood_of_connections_that_say_nothing_leaves_room_for_those_that_do() -> None:
    async def test(place: Place) -> None:
        strangers = [await place.peer() for _ in range(MAX_STRANGERS + 20)]
        assert await strangers[0].rest() == b""
        await place.still_works()

    run(test)


def test_a_rank_that_is_connected_already_is_refused() -> None:
    async def test(place: Place) -> None:
        await place.rank(0)
        again = await place.hello(Hello("rank", RANK, RANK_PROTOCOL, rank=0, attempt=1))
        assert "connected already" in (await again.answer())["reason"]
        await place.rank(1)

    run(test)


def test_lines_keep_their_bytes_and_their_place_among_messages() -> None:
    async def test(place: Place) -> None:
        peer = await place.rank()
        odd = '{ "ts":1,  "event":"note","rank":0,"attempt":1,"text":"Käse \\u00e9"}'.encode()
        for byte in line(step=1) + odd:
            await peer.say(bytes([byte]))
            await asyncio.sleep(0)
        await peer.say(b"\n" + encode(Phase("ready")) + line(step=2))
        await place.until(lambda: len(place.heard.lines) == 3)
        assert place.heard.lines == [line(step=1)[:-1], odd, line(step=2)[:-1]]
        assert place.heard.log == ["rank 0", 1, 1, Phase("ready"), 1]

    run(test)


def test_a_rank_speaks_only_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def test(place: Place) -> None:
        peer = await place.rank(0)
        wrong = [line(rank=1), line(attempt=2), b'{"event":"step"}\n', b'{"ts":1,"rank":0,"attempt":1}\n', b"{\n"]
        wrong += [b'{"type":"no such thing"}\n', b'{"ts":1,"event":3,"rank":0,"attempt":1}\n', b"\xff\xfe\n", b"3\n"]
        wrong += [line(loss=float("nan"))]
        await peer.say(b"".join(wrong) + line(step=9))
        await place.until(lambda: len(place.heard.lines) == 1)
        peer.writer.close()
        await place.until(lambda: place.heard.gone == ["rank 0"])

    run(test)
    dropped = [record for record in caplog.records if "dropped" in record.message]
    assert len(dropped) == 2 and "10 lines" in dropped[1].message  # one line for the first, one for the count


def test_a_line_over_the_limit_closes_the_connection() -> None:
    async def test(place: Place) -> None:
        for end in (b"", b'"}\n'):
            peer = await place.rank()
            await peer.say(line()[:-2] + b',"text":"' + b"x" * (codec.MAX_LINE_BYTES + 100) + end)
            assert "longer than the limit" in (await peer.answer())["reason"]
            assert await peer.rest() == b""
            assert place.heard.lines == []
            await place.until(lambda: not place.listener._ranks)

    run(test)


def test_little_of_what_follows_a_refusal_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte is read on, so that the refusal isn't reset away; the peer's flood stays in the system's buffers."""
    read: list[int] = []
    received = Connection.data_received

    def counted(connection: Connection, data: bytes) -> None:
        read.append(len(data))
        received(connection, data)

    monkeypatch.setattr(Connection, "data_received", counted)

    async def test(place: Place) -> None:
        peer = await place.hello(Hello("client", "a wrong token"))

        async def flood() -> None:
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    await asyncio.wait_for(peer.say(bytes(1 << 20)), LIMIT_S)

        flooding = asyncio.create_task(flood())
        assert (await peer.answer())["type"] == "refused"
        await flooding
        await place.still_works()

    run(test)
    assert sum(read) < 3 << 20


def test_a_client_that_sends_what_is_not_its_business_is_refused() -> None:
    async def test(place: Place) -> None:
        for data in (line(), b"nonsense\n"):
            peer = await place.hello(Hello("client", CLIENT))
            await peer.answer()
            await peer.say(data)
            assert (await peer.answer())["type"] == "refused"

    run(test)


def test_paused_ranks_are_held_back_and_lose_nothing_while_clients_are_heard() -> None:
    async def test(place: Place) -> None:
        rank, client = await place.rank(), await place.hello(Hello("client", CLIENT))
        await client.answer()
        place.listener.pause_ranks()
        late = await place.rank(1)  # one that comes while they are paused is paused too
        await asyncio.sleep(0.05)
        for number in range(1000):
            rank.writer.write(line(step=number))
        late.writer.write(line(rank=1, step=0))
        await client.say(encode(StopRequest()))
        await place.until(lambda: StopRequest() in place.heard.log)
        assert place.heard.lines == []
        place.listener.resume_ranks()
        await place.until(lambda: len(place.heard.lines) == 1001)
        assert [v["step"] for v in place.heard.parsed if v["rank"] == 0] == list(range(1000))

    run(test)


def test_a_client_that_never_reads_is_closed_and_the_others_go_on() -> None:
    async def test(place: Place) -> None:
        await place.hello(Hello("client", CLIENT))
        await place.until(lambda: len(place.listener.clients) == 1)
        big = messages.RunStatus({"text": "x" * 500_000})
        for _ in range(200):
            for client in place.listener.clients:
                client.send(big)
            await asyncio.sleep(0)
        await place.until(lambda: not place.listener.clients)
        await place.still_works()

    run(test)
