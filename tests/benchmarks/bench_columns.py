"""What keeping columns costs the run host for each line, beside a plain `json.dumps` and `write`; and a rebuild.

pytest -m benchmark -s tests/benchmarks/bench_columns.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.metrics.columns import ColumnsWriter, is_current, rebuild
from core.metrics.metrics_file import MetricsWriter

pytestmark = pytest.mark.benchmark
LINES = 200_000
BATCH = 200


def make_line(number: int) -> dict[str, Any]:
    return {
        "ts": 1.8e9 + number * 0.01, "event": "step", "rank": number % 2, "attempt": 1, "step": number // 2 + 1,
        "loss": 3.0 + number * 1e-6, "lr": 1e-3, "grad_norm": 0.5, "tokens_per_s": 1234.5, "step_time_s": 0.1,
        "data_wait_s": 0.01, "sync_wait_s": 0.01, "tokens_seen": number * 100, "epoch": 0, "block_id": 0, "chunk_id": 1,
    }  # fmt: skip


def microseconds_a_line(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / LINES * 1e6


def test_cost_of_a_line(tmp_path: Path) -> None:
    parsed = [make_line(number) for number in range(LINES)]
    lines = [json.dumps(value).encode() for value in parsed]

    def plain() -> None:
        with (tmp_path / "plain.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for value in parsed:
                file.write(json.dumps(value) + "\n")
                file.flush()

    sizes: list[int] = []
    with MetricsWriter(tmp_path / "metrics.jsonl") as metrics:
        columns = ColumnsWriter(tmp_path)
        pieces = range(0, LINES, BATCH)

        def append() -> None:
            sizes.extend(metrics.append(lines[start : start + BATCH]) for start in pieces)

        def keep() -> None:
            for start, size in zip(pieces, sizes, strict=True):
                columns.append(lines[start : start + BATCH], parsed[start : start + BATCH], size)
            columns.flush()

        base, file, kept = microseconds_a_line(plain), microseconds_a_line(append), microseconds_a_line(keep)
    again = microseconds_a_line(lambda: rebuild(tmp_path))
    print(f"\n{'':28} {'µs a line':>10} {'ratio':>7}")
    for name, cost in [("json.dumps, write, flush", base), ("append to metrics.jsonl", file), ("columns", kept)]:
        print(f"{name:28} {cost:10.2f} {cost / base:7.2f}")
    print(f"{'rebuild from metrics.jsonl':28} {again:10.2f} {again / base:7.2f}")
    assert columns.problem is None
    assert is_current(tmp_path)
