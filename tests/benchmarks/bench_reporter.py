"""What a `log()` call with four scalars costs the training thread, beside a plain `json.dumps` and `write`.

A call that takes four scalars and does nothing with them is timed too: it is what Python and the clock cost here, and
nobody's `log` is below it.

pytest -m benchmark -s tests/benchmarks/bench_reporter.py
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import pytest

from workers.host_link.reporter import Reporter

pytestmark = pytest.mark.benchmark
CALLS = 20_000
PAUSE_S = 1e-4


class Wire:
    """A loopback socket that somebody reads."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._out = socket.create_connection(server.getsockname())
            self._in, _ = server.accept()
        self.lines = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def send_bytes(self, data: bytes) -> None:
        self._out.sendall(data)

    def close(self) -> None:
        self._out.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._out.close()
        self._in.close()

    def _read(self) -> None:
        while data := self._in.recv(1 << 16):
            self.lines += data.count(b"\n")


def busy_wait(seconds: float) -> None:
    """A training step: the thread does not sleep, so the sender has to compete for the interpreter."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def time_calls(log: Callable[..., object]) -> list[float]:
    """Microseconds of each call with four scalars, one every 0.1 ms."""
    times = []
    for step in range(CALLS):
        began = time.perf_counter_ns()
        log(step, loss=1.5, lr=1e-3, grad_norm=0.7, tokens_per_s=1e5)
        times.append((time.perf_counter_ns() - began) / 1e3)
        busy_wait(PAUSE_S)
    return times


def do_nothing(step: int, **scalars: float) -> None:
    """The cheapest `log` there can be."""


def words(name: str, times: list[float]) -> str:
    return f"{name:<28} median {median(times):7.2f} µs   p99 {quantiles(times, n=100)[98]:7.2f} µs"


def test_log_beside_json_and_write(tmp_path: Path) -> None:
    empty = time_calls(do_nothing)
    wire = Wire()
    reporter = Reporter(wire, 0, 1)
    reported = time_calls(reporter.log)
    assert reporter.close()
    with (tmp_path / "metrics.jsonl").open("w", encoding="utf-8", newline="\n", buffering=1) as file:

        def write(step: int, **scalars: float) -> None:
            file.write(json.dumps({"ts": time.time(), "step": step, **scalars}) + "\n")

        written = time_calls(write)
    deadline = time.monotonic() + 10
    while wire.lines < CALLS and time.monotonic() < deadline:
        time.sleep(0.01)
    wire.close()
    print(
        f"\n{words('an empty call', empty)}\n{words('Reporter.log', reported)}\n{words('json.dumps + write', written)}"
    )
    print(f"ratio of medians {median(written) / median(reported):.1f}: so many times cheaper than json + write")
    assert wire.lines == CALLS and reporter.dropped == 0


def test_nothing_is_lost_at_10000_lines_a_second() -> None:
    wire = Wire()
    reporter = Reporter(wire, 0, 1)
    began, lines = time.perf_counter(), 30_000
    for step in range(lines):
        reporter.log(step, loss=1.5, lr=1e-3, grad_norm=0.7, tokens_per_s=1e5)
        late = began + step / 10_000 - time.perf_counter()
        if late > 0.001:
            time.sleep(late)
    rate = lines / (time.perf_counter() - began)
    assert reporter.close()
    deadline = time.monotonic() + 10
    while wire.lines < lines and time.monotonic() < deadline:
        time.sleep(0.01)
    wire.close()
    print(f"\n{lines} lines at {rate:,.0f} lines/s: {wire.lines} arrived, {reporter.dropped} dropped")
    assert wire.lines == lines and reporter.dropped == 0
