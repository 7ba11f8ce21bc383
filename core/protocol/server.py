"""Loopback server of a run host: tokens, lines, and back-pressure from the disk.

A connection's first line must be a `Hello` with the right token within 5 s. After that a rank's metrics lines are
handed on in batches, as the bytes they came in, and every other line as a message. Strangers (an HTTP request, half a
line, nothing at all, ten thousand connections) cost a refusal and nothing else.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterable
from typing import Any, Final, Protocol

import orjson

from core.errors import ProtocolError
from core.parsing import ParseError, parse_json
from core.protocol import codec
from core.protocol.challenge import new_nonce, rank_proof
from core.protocol.messages import CLIENT_PROTOCOL, RANK_PROTOCOL, Challenge, Hello, Message, Refused, Welcome

log = logging.getLogger(__name__)

# A stranger may make the host hold this much; with a token the limit is a line's, 1 MiB.
MAX_HELLO_BYTES: Final = 64 << 10
# Connections that have not said hello, or twice as many as there are ranks; one more closes the oldest, so that a flood
# cannot use up the descriptors.
MAX_STRANGERS: Final = 256
# A peer that leaves so much unread is gone or stuck; its connection is closed rather than filling our memory.
MAX_UNREAD_BYTES: Final = 4 << 20
# Times as long a rank of another machine may take: it waits for the challenge first.
_PATIENCE: Final = 3.0
# How long a refused peer has to read why: closing with data unread would reset away the refusal itself.
REFUSAL_LINGER_S: Final = 0.2
# As much is read from a refused peer, and ignored, so that the line it is in the middle of does not cause that.
REFUSAL_DRAIN_BYTES: Final = codec.MAX_LINE_BYTES


class ListenerEvents(Protocol):
    """Callbacks of a `Listener`, always on the loop's thread and in the order in which the peer wrote."""

    def connected(self, connection: Connection) -> None:
        pass

    def message_received(self, connection: Connection, message: Message) -> None:
        pass

    def lines_received(self, connection: Connection, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        """Metrics lines of a rank, checked; `lines` lack the newline and belong pairwise to `parsed`."""

    def closed(self, connection: Connection) -> None:
        pass


class Connection(asyncio.Protocol):
    """One peer: a stranger until its `Hello` is accepted, then a rank or a client until it is closed.

    Attributes:
        hello: The peer's `Hello`, once accepted.
        dropped: The number of invalid lines of a rank.
        nonce: The challenge to a peer on another machine; empty on loopback.
    """

    def __init__(self, listener: Listener, nonce: str = "") -> None:
        self.nonce = nonce
        self.hello: Hello | None = None
        self.dropped = 0
        self._listener = listener
        # From `connection_made` on, before which the listener knows nothing of it.
        self._transport: asyncio.Transport
        self._partial = bytearray()
        self._refused = False
        self._drained = 0
        self._deadline: asyncio.TimerHandle | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        limit_s = self._listener.hello_timeout_s * (_PATIENCE if self.nonce else 1.0)
        self._deadline = loop.call_later(limit_s, self._hello_overdue)
        self._listener.on_stranger(self)
        if self.nonce:
            transport.write(codec.encode(Challenge(self.nonce)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._partial.clear()
        if exc is not None:
            log.debug("a connection was lost: %s", exc)
        if self.dropped > 1:
            log.warning("%s: %d lines were dropped in all", self, self.dropped)
        self._listener.on_lost(self)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._drain(len(data))
            return
        # asyncio hands over up to 256 KiB at a time: hundreds of step lines, and mostly part of one more.
        end = data.find(b"\n")
        if end < 0:
            self._partial += data
            self._check_length(len(self._partial))
            return
        first = bytes(self._partial) + data[:end] if self._partial else data[:end]
        *lines, rest = data[end + 1 :].split(b"\n")
        lines.insert(0, first)
        self._partial = bytearray(rest)
        if self.hello is None:
            self._greet(lines.pop(0))
        if self.hello is not None and self.hello.role == "rank":
            self._read_rank_lines(lines, self.hello)
        elif self.hello is not None:
            self._read_client_lines(lines)
        self._check_length(len(self._partial))

    # for the host

    def send(self, message: Message) -> None:
        """Queue one line; do nothing for a peer that is gone, which `closed` reports."""
        self.send_line(codec.encode(message))

    def send_line(self, line: bytes) -> None:
        if self._transport.is_closing():
            return
        if self.unread_bytes > MAX_UNREAD_BYTES:
            log.warning("%s reads nothing; its connection is closed", self)
            self.abort()
            return
        self._transport.write(line)

    @property
    def unread_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def refuse(self, reason: str) -> None:
        """Say why, then close."""
        if self._refused:
            return
        self._refused = True
        log.info("%s is refused: %s", self, reason)
        self._cancel_deadline()
        self._partial.clear()
        if not self._transport.is_closing():
            self._transport.write(codec.encode(Refused(reason)))
            self._transport.resume_reading()
            self._deadline = asyncio.get_running_loop().call_later(REFUSAL_LINGER_S, self._transport.close)

    def close(self) -> None:
        """Close once everything queued is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close at once; what is queued is lost."""
        self._transport.abort()

    def pause(self) -> None:
        if not self._refused:
            self._transport.pause_reading()

    def resume(self) -> None:
        if not self._refused:
            self._transport.resume_reading()

    def __str__(self) -> str:
        if self.hello is None:
            return "an unknown peer"
        return f"rank {self.hello.rank}" if self.hello.role == "rank" else f"client (pid {self.hello.pid})"

    def _drain(self, size: int) -> None:
        """Ignore the rest of a refused peer's data; beyond the limit it stays in the system's buffers."""
        self._drained += size
        if self._drained > REFUSAL_DRAIN_BYTES:
            self._transport.pause_reading()

    # lines

    def _greet(self, line: bytes) -> None:
        self._cancel_deadline()
        try:
            hello = _decode_hello(line)
        except ProtocolError as error:
            self.refuse(error.cause)
            return
        reason = self._listener.why_refused(hello, self.nonce)
        if reason is not None:
            self.refuse(reason)
            return
        self.hello = hello
        self.send(Welcome(run_id=self._listener.run_id))
        self._listener.on_welcomed(self)

    def _read_client_lines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            if self._refused or not line.strip():
                continue
            try:
                message = codec.decode(line)
            except ProtocolError as error:
                self.refuse(error.cause)
                return
            if isinstance(message, dict):
                self.refuse("A client sends no metrics.")
                return
            self._listener.events.message_received(self, message)

    def _read_rank_lines(self, lines: Iterable[bytes], hello: Hello) -> None:
        """The hot path: one parse a line, three comparisons, and no copy of the bytes."""
        rank, attempt, events = hello.rank, hello.attempt, self._listener.events
        loads, number = orjson.loads, (int, float)
        kept: list[bytes] = []
        parsed: list[dict[str, Any]] = []
        for line in lines:
            try:
                value = loads(line)
            except orjson.JSONDecodeError:
                value = None
            if type(value) is not dict:
                if line:
                    self._drop("not a JSON object", line)
                continue
            if "type" in value:
                # So that a message never overtakes the lines before it.
                if kept:
                    events.lines_received(self, kept, parsed)
                    kept, parsed = [], []
                self._rank_message(line)
                if self._refused:
                    return
            elif value.get("rank") != rank or value.get("attempt") != attempt:
                self._drop("not this rank's own", line)
            elif type(value.get("event")) is not str or not isinstance(value.get("ts"), number):
                self._drop("without event and ts", line)
            elif len(line) > codec.MAX_LINE_BYTES:
                self._check_length(len(line))
                break
            else:
                kept.append(line)
                parsed.append(value)
        if kept:
            events.lines_received(self, kept, parsed)

    def _rank_message(self, line: bytes) -> None:
        try:
            message = codec.decode(line)
        except ProtocolError as error:
            self._drop(error.cause, line)
            return
        assert isinstance(message, Message)
        self._listener.events.message_received(self, message)

    def _drop(self, why: str, line: bytes) -> None:
        self.dropped += 1
        if self.dropped == 1:
            log.warning("%s sent a line that was dropped (%s): %r", self, why, line[:200])

    def _check_length(self, size: int) -> None:
        limit = MAX_HELLO_BYTES if self.hello is None else codec.MAX_LINE_BYTES
        if size > limit:
            self.refuse(f"A line is longer than the limit of {limit} bytes.")

    def _hello_overdue(self) -> None:
        self._deadline = None
        self.refuse(f"No hello came within {self._listener.hello_timeout_s:g} s.")

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Listener:
    """Accepts ranks and clients on 127.0.0.1, at a port of the system's choice, and ranks of other machines if asked.

    Args:
        run_id: Told to every peer that is welcomed.
        client_token: The token of clients (in `host.json`).
        events: Receives connections, messages and lines.
        hello_timeout_s: The longest silence of a stranger.
    """

    def __init__(
        self, run_id: str, client_token: str, events: ListenerEvents, hello_timeout_s: float = codec.HELLO_TIMEOUT_S
    ) -> None:
        self.run_id = run_id
        self.events = events
        self.hello_timeout_s = hello_timeout_s
        self._client_token = client_token
        self._rank_token: str | None = None
        self._attempt = 0
        self._world_size = 0
        self._servers: list[asyncio.Server] = []
        self._strangers: dict[Connection, None] = {}
        self._clients: dict[Connection, None] = {}
        self._ranks: dict[Connection, None] = {}
        self._present: dict[int, Connection] = {}
        self._paused = False

    async def start(self) -> int:
        """Listen on loopback, and return the port."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=512)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def listen_on(self, address: str, port: int) -> None:
        """Listen for ranks of other machines too, on one interface, each of which has to answer a challenge."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self, new_nonce()), address, port, backlog=512)
        self._servers.append(server)

    def expect_ranks(self, attempt: int, world_size: int, token: str) -> None:
        """Welcome only ranks of this attempt from now on; those before keep their connections."""
        self._attempt, self._world_size, self._rank_token = attempt, world_size, token
        self._present.clear()

    @property
    def clients(self) -> list[Connection]:
        return list(self._clients)

    def pause_ranks(self) -> None:
        """Read nothing from ranks, so that TCP holds them back. Clients are still heard: a stop must get through."""
        self._paused = True
        for connection in self._ranks:
            connection.pause()

    def resume_ranks(self) -> None:
        self._paused = False
        for connection in self._ranks:
            connection.resume()

    async def close(self, linger_s: float = 1.0) -> None:
        """Stop listening, send queued lines to clients for `linger_s` at most, and close every connection."""
        for server in self._servers:
            server.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + linger_s
        for connection in [*self._clients, *self._ranks, *self._strangers]:
            connection.close()
        while (self._clients or self._ranks) and loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in [*self._clients, *self._ranks, *self._strangers]:
            connection.abort()
        await asyncio.sleep(0)

    # for Connection

    def why_refused(self, hello: Hello, nonce: str = "") -> str | None:
        """Return the reason to refuse a peer, or None."""
        if hello.role == "client":
            return None if not nonce and _same(hello.token, self._client_token) else "The token is wrong."
        wanted = self._rank_token
        if wanted is not None and nonce:
            wanted = rank_proof(wanted, nonce, hello.rank, hello.attempt)
        if wanted is None or not _same(hello.token, wanted):
            return "The token is wrong."
        if hello.attempt != self._attempt or not 0 <= hello.rank < self._world_size:
            return f"No rank {hello.rank} of attempt {hello.attempt} is expected."
        if hello.rank in self._present:
            return f"Rank {hello.rank} is connected already."
        return None

    def on_stranger(self, connection: Connection) -> None:
        if len(self._strangers) >= max(MAX_STRANGERS, 2 * self._world_size):  # all ranks may come at once
            next(iter(self._strangers)).abort()
        self._strangers[connection] = None

    def on_welcomed(self, connection: Connection) -> None:
        assert connection.hello is not None
        self._strangers.pop(connection, None)
        if connection.hello.role == "rank":
            self._ranks[connection] = None
            self._present[connection.hello.rank] = connection
            if self._paused:
                connection.pause()
        else:
            self._clients[connection] = None
        self.events.connected(connection)

    def on_lost(self, connection: Connection) -> None:
        self._strangers.pop(connection, None)
        known = self._ranks if connection in self._ranks else self._clients
        if connection in known:
            del known[connection]
            if connection.hello is not None and self._present.get(connection.hello.rank) is connection:
                del self._present[connection.hello.rank]
            self.events.closed(connection)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8"))


def _decode_hello(line: bytes) -> Hello:
    """Decode the first line of a connection; raises `ProtocolError`, which names both versions where they differ."""
    try:
        value = parse_json(line)
    except ParseError:
        raise ProtocolError("The first line is not a hello.") from None
    if not isinstance(value, dict) or value.get("type") != "hello":
        raise ProtocolError("The first line is not a hello.")
    version = value.get("protocol")
    peer, ours = ("rank", RANK_PROTOCOL) if value.get("role") == "rank" else ("client", CLIENT_PROTOCOL)
    if version != ours:
        raise ProtocolError(f"Protocol mismatch: {peer} {version!r}, host {ours}.")
    hello = codec.decode(line)
    assert isinstance(hello, Hello)
    return hello
