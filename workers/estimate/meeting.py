"""Meeting of ranks that time their steps: they wait for each other over loopback, and notice when one ends.

No process group: steps of one device and of independent ranks are timed with builds of PyTorch that have no gloo too.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import Final, Self

from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic

LIMIT_S: Final = 60.0
"""For the others to come, with PyTorch imported and the model made; and for one step."""
_PLACE: Final = "meeting.json"
_POLL_S: Final = 0.02
_NUMBER: Final = struct.Struct("<d")
_TOKEN_BYTES: Final = 16


class MeetingError(RankdeckError):
    """Another rank is gone, or too slow."""

    title = "The ranks did not find each other"

    def __init__(self, cause: str) -> None:
        super().__init__(cause, "Close other programs and try again.")


class Meeting:
    """Connects ranks through rank 0; a context manager.

    Args:
        rank, ranks: This one's number, and how many there are. One alone waits for none.
        folder: That all share; rank 0 writes there where it listens.
        limit_s: How long to wait for the others.

    Raises:
        MeetingError: They did not come.
    """

    def __init__(self, rank: int, ranks: int, folder: Path, limit_s: float = LIMIT_S) -> None:
        self._peers: list[socket.socket] = []
        self._is_first = rank == 0
        try:
            if ranks > 1:
                until = time.monotonic() + limit_s
                self._peers = self._welcome(ranks - 1, folder, until) if self._is_first else [_join(folder, until)]
            for peer in self._peers:
                peer.settimeout(limit_s)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self.close()
            raise MeetingError(f"The other ranks did not come within {limit_s:g} s ({error}).") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves; others that wait then end too."""
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.close()

    def highest(self, value: float = 0.0) -> float:
        """Waits until all ranks have called it; the highest of their values, on all of them.

        Raises:
            MeetingError: A rank is gone, or took too long.
        """
        try:
            if self._is_first:
                found = max([value, *(_number(peer) for peer in self._peers)])
                for peer in self._peers:
                    peer.sendall(_NUMBER.pack(found))
                return found
            (first,) = self._peers
            first.sendall(_NUMBER.pack(value))
            return _number(first)
        except OSError as error:
            raise MeetingError(f"Another rank is gone while steps were timed ({error}).") from error

    def _welcome(self, others: int, folder: Path, until: float) -> list[socket.socket]:
        token, found = secrets.token_bytes(_TOKEN_BYTES), list[socket.socket]()
        with socket.create_server(("127.0.0.1", 0)) as server:
            place = {"port": server.getsockname()[1], "token": token.hex()}
            write_atomic(folder / _PLACE, json.dumps(place), durable=False)
            while len(found) < others:
                server.settimeout(_left_s(until))
                peer, _ = server.accept()
                peer.settimeout(_left_s(until))
                if secrets.compare_digest(_exactly(peer, _TOKEN_BYTES), token):
                    found.append(peer)
                else:
                    peer.close()
        return found


def _join(folder: Path, until: float) -> socket.socket:
    while not (folder / _PLACE).exists():
        _left_s(until)
        time.sleep(_POLL_S)
    place = read_json(folder / _PLACE)
    first = socket.create_connection(("127.0.0.1", int(place["port"])), timeout=_left_s(until))
    first.sendall(bytes.fromhex(place["token"]))
    return first


def _left_s(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the time is over")
    return left_s


def _number(peer: socket.socket) -> float:
    (value,) = _NUMBER.unpack(_exactly(peer, _NUMBER.size))
    return float(value)


def _exactly(peer: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = peer.recv(size - len(found))
        if not part:
            raise ConnectionError("it has closed the connection")
        found += part
    return found
