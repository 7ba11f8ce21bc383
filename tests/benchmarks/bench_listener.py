"""Lines a second through a real listener, sink and columns to the disk, beside a plain `json.dumps` and `write`.

pytest -m benchmark -s tests/benchmarks/bench_listener.py
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from core.host.metrics.sink import HIGH_WATER_BYTES, LOW_WATER_BYTES, MetricsSink
from core.metrics.columns import ColumnsWriter, is_current
from core.metrics.metrics_file import MetricsWriter
from core.protocol.messages import RANK_PROTOCOL, Message
from core.protocol.server import Connection, Listener

pytestmark = pytest.mark.benchmark

LINES: Final = 200_000
RANKS: Final = 2
PACED_PER_S: Final = 10_000
PACED_S: Final = 5
TOKEN: Final = "token"
ROUNDS: Final = 3

# Another process, so that sending costs the listener nothing: as real ranks.
SENDER: Final = """
import json, socket, sys, time
port, rank, count, per_s, protocol = (int(text) for text in sys.argv[1:])
wire = socket.create_connection(("127.0.0.1", port))
hello = {"type": "hello", "role": "rank", "token": "token", "protocol": protocol, "rank": rank, "attempt": 1, "pid": 0}
wire.sendall(json.dumps(hello).encode() + b"\\n")
wire.recv(4096)
lines = [
    json.dumps({"ts": 1763700000.123456 + n, "event": "step", "rank": rank, "attempt": 1, "step": n,
                "loss": 2.345678 - n * 1e-6, "lr": 0.000987, "grad_norm": 1.2345, "tokens_per_s": 3926.7,
                "step_time_s": 0.0123, "epoch": 0, "block_id": 0, "chunk_id": n // 100}).encode() + b"\\n"
    for n in range(count)
]
print("ready", flush=True)
sys.stdin.readline()
began, sent = time.perf_counter(), 0
while sent < count:
    due = count if not per_s else min(count, int((time.perf_counter() - began) * per_s))
    if due > sent:
        wire.sendall(b"".join(lines[sent:min(due, sent + 500)]))
        sent = min(due, sent + 500)
    else:
        time.sleep(0.001)
wire.shutdown(socket.SHUT_WR)
while wire.recv(4096):
    pass
"""


@dataclass
class Host:
    """The run host's path of a line: listener → sink → metrics file and columns, with its back-pressure."""

    folder: Path
    lines: int = 0
    gone: int = 0
    late_s: list[float] = field(default_factory=list)
    paused: bool = False

    async def run(self, lines: int, per_s: int) -> float:
        """Takes so many lines from every rank; the seconds from the first byte to the last line on the disk."""
        loop = asyncio.get_running_loop()
        self.loop = loop
        columns = ColumnsWriter(self.folder)
        self.sink = MetricsSink(
            MetricsWriter(self.folder / "metrics.jsonl"), columns, self._written, lambda words: pytest.fail(str(words))
        )
        self.listener = Listener("benchmark", "client", self)
        port = await self.listener.start()
        self.listener.expect_ranks(1, RANKS, TOKEN)
        senders = [self._sender(port, rank, lines, per_s) for rank in range(RANKS)]
        for sender in senders:
            await loop.run_in_executor(None, sender.stdout.readline)
        began = time.perf_counter()
        for sender in senders:
            sender.stdin.write(b"\n")
            sender.stdin.close()
        while self.gone < RANKS:
            before = loop.time()
            await asyncio.sleep(0.01)
            self.late_s.append(loop.time() - before - 0.01)
        assert await loop.run_in_executor(None, self.sink.close, 60.0) == 0
        took_s = time.perf_counter() - began
        await self.listener.close()
        for sender in senders:
            sender.stdout.close()
            assert sender.wait(timeout=30) == 0
        return took_s

    def _sender(self, port: int, rank: int, lines: int, per_s: int) -> Any:
        argv = [sys.executable, "-c", SENDER, *map(str, (port, rank, lines, per_s, RANK_PROTOCOL))]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def connected(self, connection: Connection) -> None:
        del connection

    def message_received(self, connection: Connection, message: Message) -> None:
        del connection, message

    def lines_received(self, connection: Connection, lines: list[bytes], parsed: list[dict[str, Any]]) -> None:
        del connection
        self.lines += len(lines)
        self.sink.put(lines, parsed)
        if not self.paused and self.sink.pending_bytes > HIGH_WATER_BYTES:
            self.paused = True
            self.listener.pause_ranks()

    def closed(self, connection: Connection) -> None:
        del connection
        self.gone += 1

    def _written(self, size_bytes: int) -> None:
        del size_bytes
        self.loop.call_soon_threadsafe(self._resume)

    def _resume(self) -> None:
        if self.paused and self.sink.pending_bytes < LOW_WATER_BYTES:
            self.paused = False
            self.listener.resume_ranks()


def check_nothing_lost(path: Path, lines: int) -> None:
    found: dict[int, list[int]] = {rank: [] for rank in range(RANKS)}
    with path.open("rb") as file:
        for line in file:
            value = json.loads(line)
            found[value["rank"]].append(value["step"])
    assert all(steps == list(range(lines)) for steps in found.values())


def plain_lines_per_s(folder: Path) -> float:
    value = {
        "ts": time.time(), "event": "step", "rank": 0, "attempt": 1, "step": 1, "loss": 2.345678, "lr": 0.000987,
        "grad_norm": 1.2345, "tokens_per_s": 3926.7, "step_time_s": 0.0123, "epoch": 0, "block_id": 0, "chunk_id": 7,
    }  # fmt: skip
    began = time.perf_counter()
    with (folder / "plain.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for number in range(LINES):
            value["step"] = number
            file.write(json.dumps(value) + "\n")
    return LINES / (time.perf_counter() - began)


def test_lines_a_second_as_fast_as_they_come(tmp_path: Path) -> None:
    print()
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        host = Host(folder)
        took_s = asyncio.run(host.run(LINES, 0))
        check_nothing_lost(folder / "metrics.jsonl", LINES)
        assert is_current(folder)
        rate, plain = RANKS * LINES / took_s, plain_lines_per_s(folder)
        late_ms = sorted(host.late_s)[int(len(host.late_s) * 0.99)] * 1e3
        print(
            f"listener, {RANKS} ranks, checked, to disk and columns: {rate:,.0f} lines/s "
            f"({rate / plain:.2f} of json.dumps + write, {plain:,.0f}); loop late p99 {late_ms:.0f} ms"
        )


def test_ten_thousand_lines_a_second_lose_nothing(tmp_path: Path) -> None:
    lines = PACED_PER_S * PACED_S // RANKS
    host = Host(tmp_path)
    before = os.times()
    took_s = asyncio.run(host.run(lines, PACED_PER_S // RANKS))
    after = os.times()
    check_nothing_lost(tmp_path / "metrics.jsonl", lines)
    share = (after.user + after.system - before.user - before.system) / took_s
    late_ms = sorted(host.late_s)[int(len(host.late_s) * 0.99)] * 1e3
    print(
        f"\nlistener at {PACED_PER_S:,} lines/s for {PACED_S} s: nothing lost, {share:.0%} of a core, "
        f"loop late p99 {late_ms:.0f} ms"
    )
