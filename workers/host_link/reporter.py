"""Reporter of a rank's messages and metrics, which never makes a training step wait.

`Reporter.log` puts a tuple on a deque: no lock, no system call, no encoding. A background thread makes JSON lines of
them a few dozen times a second, less often where steps are slow, and writes them to the host's socket. When the host is
slower than the run, metrics lines beyond a bound are dropped and counted; messages and events never are.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Protocol

import orjson

from core.protocol.codec import encode
from core.protocol.messages import Bye, Message, RankFailed

MAX_PENDING_LINES: Final = 20_000
_INTERVAL_S: Final = 0.025
# Where steps are slow there is seldom anything to send, and each look takes a core away from the training.
_LONGEST_INTERVAL_S: Final = 0.2
_BATCH_LINES: Final = 1_000
_MAX_TEXT: Final = 100_000


class LineSender(Protocol):
    def send_bytes(self, data: bytes) -> None:
        """Write whole lines; may block, raise OSError when the other end is gone."""


class Reporter:
    """Sends metrics lines, events and messages of one rank, in the order they were given.

    `log` belongs to the training thread; `event` and `send` may be called from any thread. `limit`: metrics lines that
    may wait before further ones are `dropped`.
    """

    def __init__(self, sender: LineSender, rank: int, attempt: int, *, limit: int = MAX_PENDING_LINES) -> None:
        self.dropped = 0
        self._sender = sender
        self._origin = {"rank": rank, "attempt": attempt}
        self._limit = limit
        self._pending: deque[tuple[int, float, dict[str, Any]] | bytes] = deque()
        self._append = self._pending.append
        self._wake = threading.Event()
        self._closing = False
        self._broken: OSError | None = None
        self._told = 0
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def log(self, step: int, /, **scalars: Any) -> None:
        """Queue one `step` line; None leaves a name out. Takes about a microsecond and never blocks.

        A number in an array, a tensor's or NumPy's, is read in the sender's thread.
        """
        if len(self._pending) >= self._limit:
            self.dropped += 1
            return
        self._append((step, time.time(), scalars))

    def event(self, name: str, /, **fields: Any) -> None:
        """Queue one line of another kind (`eval`, `sample`, `chunk_complete`, `alert`, …); never dropped."""
        self._append(self._line(time.time(), name, fields))
        self._wake.set()

    def send(self, message: Message) -> None:
        self._append(encode(message))
        self._wake.set()

    def close(self, last: Bye | RankFailed | None = None, timeout_s: float = 5.0) -> bool:
        """Send the queue, then `last`, and end the thread; True when all was handed to the system in time."""
        if isinstance(last, Bye):
            last = Bye(last.step, self.dropped)
        if last is not None:
            self._append(encode(last))
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and self._broken is None and not self._pending

    def _run(self) -> None:
        interval_s = _INTERVAL_S
        while True:
            self._wake.wait(interval_s)
            self._wake.clear()
            closing = self._closing
            paced_s = interval_s / 2.0 if self._pending else 2.0 * interval_s
            interval_s = min(max(paced_s, _INTERVAL_S), _LONGEST_INTERVAL_S)
            self._drain()
            if self._broken is not None or (closing and not self._pending):
                return

    def _drain(self) -> None:
        while self._pending and self._broken is None:
            lines: list[bytes] = []
            while self._pending and len(lines) < _BATCH_LINES:
                entry = self._pending.popleft()
                if isinstance(entry, bytes):
                    lines.append(entry)
                else:
                    step, ts, scalars = entry
                    lines.append(self._line(ts, "step", {"step": step, **scalars}))
            if self.dropped > self._told:
                # In front, since a Bye must stay the last line.
                lines.insert(0, self._drop_alert())
            try:
                self._sender.send_bytes(b"".join(lines))
            except OSError as error:
                self._broken = error

    def _line(self, ts: float, event: str, fields: Mapping[str, Any]) -> bytes:
        values: dict[str, Any] = {"ts": ts, "event": event, **self._origin}
        nonfinite = []
        for name, value in fields.items():
            plain = _plain(value)
            if isinstance(plain, float) and not math.isfinite(plain):
                nonfinite.append(name)
                plain = None
            elif plain is None:
                continue
            values[name] = plain
        if nonfinite:
            values["nonfinite"] = nonfinite
        try:
            return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError:  # an integer beyond 64 bits
            return json.dumps(values).encode("utf-8") + b"\n"

    def _drop_alert(self) -> bytes:
        lost, self._told = self.dropped - self._told, self.dropped
        fields = {
            "kind": "dropped_metrics",
            "title": "Some metrics were dropped",
            "cause": f"The run's host could not keep up; {lost} lines of this device were dropped.",
            "next_step": "Training is not affected. Log less often if the gaps matter.",
            "dropped": self.dropped,
        }
        return self._line(time.time(), "alert", fields)


def _plain(value: Any) -> Any:
    if isinstance(value, float | int | None):
        return value
    if isinstance(value, str):
        return value[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
