"""Channel: requests and answers between two machines, one JSON line each, by peers that prove that they share a key.

The key never travels: each side answers the other's challenge with it (`core.protocol.challenge`). From both challenges
comes a secret of this connection, which signs and counts every line, so that no one between the machines can add,
change or repeat one. Lines are not encrypted: nothing secret belongs in them.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, Protocol

from core.errors import RankdeckError
from core.parsing import ParseError, parse_json
from core.protocol.challenge import is_proof, new_nonce, proof

SILENT_S: Final = 6.0  # A peer that is silent for this time is gone; a cut network is noticed by nothing else.
_MAX_LINE_BYTES: Final = 1 << 20
_MAX_STRANGER_BYTES: Final = 1 << 10
_MAX_PEERS: Final = 4096
_LEAVE_S: Final = 2.0


class ChannelError(RankdeckError):
    """Another machine cannot be reached, or cannot be trusted.

    Attributes:
        why: ``unreachable``, ``closed`` (nothing listens there), ``key`` (another key) or ``lost``.
    """

    title = "A node cannot be reached"

    def __init__(self, why: str, cause: str, next_step: str) -> None:
        super().__init__(cause, next_step)
        self.why = why


class Handler(Protocol):
    """Answers one peer."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request."""

    def closed(self) -> None:
        """The peer is gone."""


class _Lines:
    """The lines of one connection, signed once a secret is agreed on."""

    def __init__(self, connection: socket.socket, sends: str, receives: str) -> None:
        connection.settimeout(SILENT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._file: BinaryIO = connection.makefile("rb")
        self._sends, self._receives = sends, receives
        self._secret = ""
        self._sent = self._received = 0

    def sign(self, secret: str) -> None:
        self._secret = secret

    def send(self, value: Mapping[str, Any]) -> None:
        text = json.dumps(value)
        if self._secret:
            text = f"{proof(self._secret, self._sends, str(self._sent), text)} {text}"
            self._sent += 1
        self._socket.sendall(f"{text}\n".encode())

    def receive(self) -> dict[str, Any]:
        """The next line; raises `OSError` where there is none, or not a right one."""
        limit = _MAX_LINE_BYTES if self._secret else _MAX_STRANGER_BYTES
        line = self._file.readline(limit + 1)
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection was closed" if len(line) <= limit else "a line is too long")
        text = line.decode("utf-8", "replace").rstrip("\n")
        if self._secret:
            signature, _, text = text.partition(" ")
            if not is_proof(signature, self._secret, self._receives, str(self._received), text):
                raise ConnectionError("a line was changed on its way")
            self._received += 1
        try:
            value = parse_json(text)
        except ParseError as error:
            raise ConnectionError(f"a line cannot be read: {error}") from None
        if not isinstance(value, dict):
            raise ConnectionError("a line is not an object")
        return value

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._file.close()
        self._socket.close()


class Channel:
    """A connection to another machine; any thread may ask.

    Args:
        host, port: Where it listens.
        key: What both must know.

    Raises:
        ChannelError: Nothing is there, or it has another key.
    """

    def __init__(self, host: str, port: int, key: str) -> None:
        self._asking = threading.Lock()
        where = f"{host}, port {port}"
        try:
            connection = socket.create_connection((host, port), timeout=SILENT_S)
        except ConnectionRefusedError:
            step = f"Start the run there, with the same command, and let the firewall there pass port {port}."
            raise ChannelError("closed", f"Nothing listens at {where}.", step) from None
        except OSError as error:
            step = "Check the name or address, --nic, and the firewalls of both machines."
            raise ChannelError("unreachable", f"{where} does not answer ({error}).", step) from None
        self._lines = _Lines(connection, "client", "server")
        try:
            self._prove(key)
        except OSError as error:
            self._lines.close()
            step = "Check that the run was started there with the same Rankdeck."
            raise ChannelError("unreachable", f"{where} closed the connection ({error}).", step) from None
        except ChannelError:
            self._lines.close()
            raise

    def _prove(self, key: str) -> None:
        theirs, ours = str(self._lines.receive().get("challenge")), new_nonce()
        self._lines.send({"challenge": ours, "proof": proof(key, "client", theirs, ours)})
        answer = self._lines.receive()
        if not is_proof(answer.get("proof"), key, "server", ours, theirs):
            raise other_key()
        self._lines.sign(proof(key, "session", theirs, ours))

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            ChannelError: The other machine is gone.
        """
        with self._asking:
            try:
                self._lines.send(request)
                return self._lines.receive()
            except (OSError, ValueError) as error:
                step = "Look at the output there, and at the network between the machines."
                raise ChannelError("lost", f"The connection to another machine was lost ({error}).", step) from None

    def close(self) -> None:
        self._lines.close()


class Server:
    """Answers other machines, each in a thread of its own.

    Args:
        address, port: Where to listen; one interface's address, never all of them.
        key: What peers must know.
        handler: Makes what answers a peer, by its address.
        refused: Told the address of a peer that does not know the key.

    Raises:
        RankdeckError: The port is taken.
    """

    def __init__(
        self,
        address: str,
        port: int,
        key: str,
        handler: Callable[[str], Handler],
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        try:
            self._listener = socket.create_server((address, port), backlog=128)
        except OSError as error:
            raise RankdeckError(
                f"Port {port} of {address} cannot be opened ({error}).",
                "Choose another port, the same on all machines: --rdzv-endpoint HOST:PORT",
                title="A port is taken",
            ) from None
        self._key = key
        self._handler = handler
        self._refused = refused
        self._peers: dict[_Lines, None] = {}
        self._lock = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name="channel-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        with self._lock:
            peers = list(self._peers)
        for peer in peers:
            peer.close()
        self._thread.join(_LEAVE_S)

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            if len(self._peers) >= _MAX_PEERS:
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection, peer[0]), name="channel-peer", daemon=True).start()

    def _serve(self, connection: socket.socket, peer: str) -> None:
        lines = _Lines(connection, "server", "client")
        with self._lock:
            self._peers[lines] = None
        try:
            if self._check(lines):
                self._answer(lines, self._handler(peer))
            else:
                self._refused(peer)
        except (OSError, ValueError):
            pass  # a stranger, or a peer that has closed: the handler was told
        finally:
            with self._lock:
                self._peers.pop(lines, None)
            lines.close()

    def _check(self, lines: _Lines) -> bool:
        ours = new_nonce()
        lines.send({"challenge": ours})
        answer = lines.receive()
        theirs = str(answer.get("challenge"))
        if not is_proof(answer.get("proof"), self._key, "client", ours, theirs):
            lines.send({"refused": "key"})
            return False
        lines.send({"proof": proof(self._key, "server", theirs, ours)})
        lines.sign(proof(self._key, "session", ours, theirs))
        return True

    def _answer(self, lines: _Lines, handler: Handler) -> None:
        try:
            while not self._closing:
                lines.send(handler.answer(lines.receive()))
        finally:
            handler.closed()


def other_key() -> ChannelError:
    """The error of a machine that has another key."""
    return ChannelError(
        "key",
        "The other machine has another key, so it is not trusted, and does not trust this one.",
        "Copy nodes.key from the node that the run's host is on; docs/nodes.md says where it is.",
    )
