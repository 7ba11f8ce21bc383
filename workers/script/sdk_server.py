"""The wrapper's end of the package `rankdeck`: a loopback socket for the user's program.

Everything happens in the thread that calls `SdkServer.poll`; nothing waits. A stranger's data costs nothing but the
connection.
"""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.protocol.codec import HELLO_TIMEOUT_S, MAX_LINE_BYTES

ENV_PORT: Final = "RANKDECK_SDK_PORT"
ENV_TOKEN: Final = "RANKDECK_SDK_TOKEN"
TOKEN_BYTES: Final = 24
_READ_BYTES: Final = 1 << 18
_MAX_PEERS: Final = 64
_MAX_UNSENT_BYTES: Final = 8 << 20

Handle = Callable[["Peer", Mapping[str, Any]], None]


@dataclass(slots=True, eq=False)
class Peer:
    """One process of the user's program that has imported `rankdeck`; welcome once it has sent the token."""

    connection: socket.socket
    deadline: float
    welcome: bool = False
    received: bytes = b""
    unsent: bytearray = field(default_factory=bytearray)

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message; it leaves at the next `poll`."""
        self.unsent += json.dumps(message).encode("utf-8") + b"\n"

    def answer(self, question: Mapping[str, Any], **fields: Any) -> None:
        self.send({"id": question.get("id"), **fields})


class SdkServer:
    """Listens on an ephemeral port of 127.0.0.1 for processes that send the token.

    Args:
        welcome: The first message to each process.
        handle: Called with each message of a welcomed process.
    """

    def __init__(self, welcome: Callable[[], Mapping[str, Any]], handle: Handle) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._welcome = welcome
        self._handle = handle
        self._peers: dict[socket.socket, Peer] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(16)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector.register(self._listener, selectors.EVENT_READ)

    def poll(self, timeout_s: float) -> None:
        """Take incoming messages, after at most `timeout_s`."""
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._read(self._peers[key.fileobj])  # type: ignore[index]
        now = time.monotonic()
        for peer in list(self._peers.values()):
            if not peer.welcome and now > peer.deadline:
                self._close(peer)
            elif peer.unsent:
                self._write(peer)

    def broadcast(self, message: Mapping[str, Any]) -> None:
        for peer in self._peers.values():
            if peer.welcome:
                peer.send(message)

    def close(self) -> None:
        for peer in list(self._peers.values()):
            self._close(peer)
        self._selector.close()
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # it has gone again
        if len(self._peers) >= _MAX_PEERS:
            connection.close()
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[connection] = Peer(connection, time.monotonic() + HELLO_TIMEOUT_S)
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, peer.received = (peer.received + data).split(b"\n")
        for line in lines:
            if not self._take(peer, line):
                self._close(peer)
                return
        if not data or len(peer.received) > MAX_LINE_BYTES:
            self._close(peer)

    def _take(self, peer: Peer, line: bytes) -> bool:
        """Take a line; False where the connection must be closed."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            # A line that was garbled on its way must not lose all others.
            return peer.welcome
        if not isinstance(message, dict):
            return peer.welcome
        if not peer.welcome:
            if not hmac.compare_digest(str(message.get("hello", "")).encode(), self.token.encode()):
                return False
            peer.welcome = True
            peer.send(dict(self._welcome()))
            return True
        self._handle(peer, message)
        return True

    def _write(self, peer: Peer) -> None:
        try:
            sent = peer.connection.send(peer.unsent)
            del peer.unsent[:sent]
        except BlockingIOError:
            if len(peer.unsent) > _MAX_UNSENT_BYTES:
                self._close(peer)
        except OSError:
            self._close(peer)

    def _close(self, peer: Peer) -> None:
        if self._peers.pop(peer.connection, None) is not None:
            self._selector.unregister(peer.connection)
            peer.connection.close()
