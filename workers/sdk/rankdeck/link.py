"""The connection to the run host. Nothing in it ever blocks a training step or raises into a training script."""

from __future__ import annotations

import atexit
import collections
import json
import os
import socket
import threading
import time
from typing import Any, BinaryIO, Deque, Dict, Iterator, Mapping, Optional, Tuple, Union

CONNECT_S = 5.0
_ANSWER_S = 60.0
_MAX_PENDING = 20000
_MAX_LINES_AT_ONCE = 500
_MAX_LINE = 1 << 20

Number = Union[int, float]


class Link:
    """One process's connection. Messages go through a queue and a thread, so a slow or lost host costs nothing.

    Attributes:
        alive: Whether messages are still sent.
        stop: Whether the run was asked to stop.
        welcome: What the host said first: settings, seed, this rank's share, the newest checkpoint.
        ready: Set once `welcome` has arrived, or nothing is listening.
        dropped: Messages dropped since the last report because the queue was full.
    """

    def __init__(self) -> None:
        self.port = os.environ.get("RANKDECK_SDK_PORT", "")
        self.alive = bool(self.port)
        self.stop = False
        self.welcome: Dict[str, Any] = {}
        self.ready = threading.Event()
        self.dropped = 0
        self._pending: Deque[Mapping[str, Any]] = collections.deque()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._answers: Dict[int, _Answer] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._socket: Optional[socket.socket] = None
        if self.alive:
            threading.Thread(target=self._send, name="rankdeck-sender", daemon=True).start()
        else:
            self.ready.set()

    def put(self, message: Mapping[str, Any]) -> None:
        """Queues a message; never waits."""
        if not self.alive:
            return
        if len(self._pending) >= _MAX_PENDING:
            self.dropped += 1
            return
        self._idle.clear()
        self._pending.append(message)
        self._wake.set()

    def ask(self, timeout_s: float = _ANSWER_S, **message: Any) -> Optional[Dict[str, Any]]:
        """Sends a question and waits for its answer, for a bounded time.

        Returns:
            The answer; None if the host is gone or does not answer in time.
        """
        if not self.alive:
            return None
        answer = _Answer()
        with self._lock:
            self._number += 1
            number = self._number
            self._answers[number] = answer
        self.put(dict(message, id=number))
        deadline = time.monotonic() + timeout_s
        while self.alive and not answer.arrived.wait(0.25) and time.monotonic() < deadline:
            pass
        return self._answers.pop(number).message

    def flush(self, timeout_s: float = 2.0) -> None:
        """Waits for a bounded time until the operating system has everything that is queued."""
        deadline = time.monotonic() + timeout_s
        while self.alive and self._pending and time.monotonic() < deadline:
            self._idle.wait(0.05)

    def _send(self) -> None:
        try:
            connection = self._open()
            while True:
                self._wake.wait(1.0)
                self._wake.clear()
                while self._pending:
                    connection.sendall(b"".join(self._next_lines()))
                self._idle.set()
        except Exception:  # whatever it is, the training script must not see it
            self._lose()

    def _next_lines(self) -> Iterator[bytes]:
        for _ in range(min(len(self._pending), _MAX_LINES_AT_ONCE)):
            # Taken out only once it is encoded: flush() looks at what is left.
            line = _encoded(self._pending[0])
            if line is not None:
                yield line
            self._pending.popleft()
        if self.dropped:
            yield _encoded({"dropped": self.dropped}) or b""
            self.dropped = 0

    def _open(self) -> socket.socket:
        connection = self._socket = socket.create_connection(("127.0.0.1", int(self.port)), timeout=CONNECT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = {"hello": os.environ.get("RANKDECK_SDK_TOKEN", ""), "sdk": 1, "pid": os.getpid()}
        connection.sendall(_encoded(hello) or b"")
        lines = connection.makefile("rb")
        self.welcome = json.loads(lines.readline(_MAX_LINE))
        self.stop = bool(self.welcome.get("stop"))
        connection.settimeout(None)
        self.ready.set()
        threading.Thread(target=self._receive, args=(lines,), name="rankdeck-receiver", daemon=True).start()
        return connection

    def _receive(self, lines: BinaryIO) -> None:
        try:
            for line in iter(lambda: lines.readline(_MAX_LINE), b""):
                message = json.loads(line)
                if message.get("stop"):
                    self.stop = True
                waiting = self._answers.get(message.get("id"))
                if waiting is not None:
                    waiting.message = message
                    waiting.arrived.set()
        except Exception:  # whatever it is, the training script must not see it: it counts as a lost host
            pass
        self._lose()

    def _lose(self) -> None:
        self.alive = False
        self._pending.clear()
        self.ready.set()
        self._idle.set()
        try:
            if self._socket is not None:
                self._socket.close()
        except OSError:
            pass


class _Answer:
    """The answer to one question, filled in by the receiver thread."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.message: Optional[Dict[str, Any]] = None


_link: Optional[Link] = None
_link_lock = threading.Lock()


def connected() -> Link:
    """This process's link, made on first use."""
    global _link
    if _link is None:
        with _link_lock:
            if _link is None:
                _link = Link()
    return _link


def welcomed() -> Dict[str, Any]:
    """What the host said first, waited for for a bounded time; empty without a host."""
    link = connected()
    link.ready.wait(CONNECT_S)
    return link.welcome


def rank() -> int:
    """This process's rank; 0 in a single process."""
    return int(os.environ.get("RANK") or 0)


def world_size() -> int:
    """The number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def _forget() -> None:
    """A forked process (a data loader's worker) has none of the threads and must not write into the parent's socket."""
    global _link, _link_lock
    _link, _link_lock = None, threading.Lock()


def _at_exit() -> None:
    if _link is not None:
        _link.flush()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_at_exit)


def plain_number(value: Any) -> Optional[Number]:
    """A number, also from a tensor or array of one element; None for anything else."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    try:
        plain = value.item()
    except Exception:
        return None
    return plain if isinstance(plain, (int, float)) else None


def _encoded(message: Mapping[str, Any]) -> Optional[bytes]:
    """One line, or None for what cannot be sent."""
    try:
        if "log" in message:
            numbers = {name: number for name, number in _numbers(message["log"]) if number is not None}
            message = dict(message, log=numbers)
        line = json.dumps(message).encode("utf-8") + b"\n"
    except Exception:
        return None
    return line if len(line) <= _MAX_LINE else None


def _numbers(values: Mapping[Any, Any], prefix: str = "") -> Iterator[Tuple[str, Optional[Number]]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, prefix + str(name) + "/")
        else:
            yield prefix + str(name), plain_number(value)
