"""Columns opened beside a run: lines that come before they are open are not missed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from core.host.metrics.sink import BackgroundColumns
from core.metrics.column_index import read_index
from core.metrics.columns import is_current
from core.metrics.metrics_file import MetricsWriter

pytestmark = pytest.mark.windows

LIMIT_S = 60.0


def step(number: int) -> dict[str, Any]:
    return {"ts": 1.0, "event": "step", "rank": 0, "attempt": 1, "step": number}


def rows(run_dir: Path) -> int:
    index = read_index(run_dir / "columns")
    return 0 if index is None or "rank0" not in index.groups else index.groups["rank0"].rows


def test_no_line_is_missed_or_taken_twice(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    metrics.append([json.dumps(step(number)).encode() for number in range(1, 1001)])
    columns = BackgroundColumns(tmp_path)
    deadline = time.monotonic() + LIMIT_S
    written = 1000
    while written == 1000 or rows(tmp_path) != written:  # lines go on coming until all are in the columns
        written += 1
        value = step(written)
        line = json.dumps(value).encode()
        columns.append([line], [value], metrics.append([line]))
        columns.flush()
        time.sleep(0.002)
        assert time.monotonic() < deadline
    columns.close()
    metrics.close()
    assert rows(tmp_path) == written
    assert is_current(tmp_path)


def test_a_folder_that_takes_no_columns_stops_nothing(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    (tmp_path / "columns").write_text("a file in the way", encoding="utf-8")
    columns = BackgroundColumns(tmp_path)
    value = step(1)
    line = json.dumps(value).encode()
    columns.append([line], [value], metrics.append([line]))
    columns.flush()
    columns.close()
    metrics.close()
