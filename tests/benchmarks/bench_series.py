"""What a batch of live lines costs, parsed and taken into the series, and whether growing ever stalls.

pytest -m benchmark -s tests/benchmarks/bench_series.py
"""

from __future__ import annotations

import json
import time
from statistics import median

import numpy as np
import pytest

from app.run_data.curves import reduce_range
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.run_data.smoothing import smoothed
from tests.helpers.synthetic_run import Shape, metrics_lines

pytestmark = pytest.mark.benchmark
BATCH = 500


def test_a_live_batch() -> None:
    lines = [line.rstrip() for line in metrics_lines(Shape(steps=50_000))]
    batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
    began = time.perf_counter()
    for line in lines:
        json.loads(line)
    plain = time.perf_counter() - began
    began = time.perf_counter()
    parsed = [parse_lines(batch) for batch in batches]
    parsing = time.perf_counter() - began
    run = RunSeries()
    began = time.perf_counter()
    for batch in parsed:
        run.apply(batch)
    taking = time.perf_counter() - began
    per_line = 1e6 / len(lines)
    print(
        f"\njson.loads alone {plain * per_line:.2f} us a line; parsed in the thread {parsing * per_line:.2f} us", end=""
    )
    print(f" ({plain / parsing:.1f} x faster); taken on the GUI thread {taking * per_line:.2f} us")


def test_growing_never_stalls() -> None:
    rows, rest = 2000, np.zeros(2000)
    series = Series()
    took: list[float] = []
    for n in range(5000):
        step = np.arange(n * rows, (n + 1) * rows, dtype=np.float64)
        began = time.perf_counter()
        series.append(rows, {"step": step, "ts": step, "loss": rest})
        took.append(time.perf_counter() - began)
    print(f"\n10 M rows, {rows} a batch: median {median(took) * 1e3:.2f} ms, longest {max(took) * 1e3:.1f} ms a batch")


@pytest.mark.parametrize("rows", [100_000, 1_000_000, 10_000_000])
def test_a_curve_costs_pixels_not_rows(rows: int) -> None:
    chance = np.random.default_rng(0)
    series = Series()
    step = np.arange(rows, dtype=np.float64)
    series.append(rows, {"step": step, "loss": chance.standard_normal(rows)})
    took: list[float] = []
    for n in range(50):
        low = rows * 0.1 * n / 50
        began = time.perf_counter()
        curve, first = reduce_range(series, "loss", "step", low, low + rows * 0.7, 1600)
        smoothed(series, "loss", curve, first, 200.0)
        took.append(time.perf_counter() - began)
    print(f"\n{rows:,} rows to 1,600 bins and smoothed: median {median(took) * 1e3:.2f} ms")
