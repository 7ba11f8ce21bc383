"""CSV of a run: columns and values as in `metrics.jsonl`, whatever its lines are like, without holding them all."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from core.export.export import write_tables
from core.export.lines import ExportCancelledError, MetricsLines


def silent(_done: float) -> None:
    """Nobody looks."""


def write_lines(path: Path, lines: list[dict[str, Any] | bytes]) -> MetricsLines:
    raw = [
        line if isinstance(line, bytes) else json.dumps({"ts": 1.5, "attempt": 1, **line}).encode() for line in lines
    ]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return MetricsLines(path)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_kind_of_line_has_its_table(tmp_path: Path) -> None:
    lines = write_lines(
        tmp_path / "metrics.jsonl",
        [
            {"event": "launch", "rank": -1, "world_size": 2},
            {"event": "step", "rank": 0, "step": 1, "loss": 2.5, "lr": 1e-3},
            {"event": "step", "rank": 1, "step": 1, "loss": None, "nonfinite": ["loss"], "grad_norm": 0.1},
            {"event": "eval", "rank": 0, "step": 1, "val_loss": 2.25},
            {"event": "device", "rank": -1, "uuid": "cpu:0", "power_w": None, "throttle_reasons": ["hot", "power"]},
            {"event": "sample", "rank": 0, "step": 1, "prompt": "say ", "text": 'a "b",\nü'},
            {"event": "finished", "rank": -1},
        ],
    )
    made = write_tables(lines, tmp_path, silent)
    assert made == {"steps.csv": 2, "evals.csv": 1, "devices.csv": 1, "samples.csv": 1}
    assert rows(tmp_path / "steps.csv") == [
        {"ts": "1.5", "attempt": "1", "rank": "0", "step": "1", "loss": "2.5", "lr": "0.001", "grad_norm": ""},
        {"ts": "1.5", "attempt": "1", "rank": "1", "step": "1", "loss": "nan", "lr": "", "grad_norm": "0.1"},
    ]
    assert rows(tmp_path / "evals.csv")[0]["val_loss"] == "2.25"
    device = rows(tmp_path / "devices.csv")[0]
    assert (device["power_w"], json.loads(device["throttle_reasons"])) == ("", ["hot", "power"])
    assert rows(tmp_path / "samples.csv")[0]["text"] == 'a "b",\nü'


def test_damaged_lines_and_one_that_is_being_written_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    step: dict[str, Any] = {"event": "step", "rank": 0, "step": 1, "flag": True}
    lines = write_lines(path, [step, b"{broken", b"[1]", b"", b'{"event":3}', b"\xff\xfe"])
    with path.open("ab") as file:
        file.write(b'{"event":"step","step":2')
    lines = MetricsLines(path)
    with path.open("ab") as file:
        file.write(b',"late":1}\n{"event":"step","step":3,"late":1}\n')
    assert write_tables(lines, tmp_path, silent) == {"steps.csv": 1}
    assert lines.damaged == 5
    assert rows(tmp_path / "steps.csv")[0]["flag"] == "true"


def test_a_run_without_metrics_makes_no_table(tmp_path: Path) -> None:
    assert write_tables(MetricsLines(tmp_path / "none.jsonl"), tmp_path, silent) == {}
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_cancelled(tmp_path: Path) -> None:
    write_lines(tmp_path / "metrics.jsonl", [{"event": "step", "rank": 0, "step": 1}])
    with pytest.raises(ExportCancelledError):
        write_tables(MetricsLines(tmp_path / "metrics.jsonl", lambda: True), tmp_path, silent)


def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    peaks = []
    for count in (5_000, 20_000):
        path = tmp_path / f"{count}.jsonl"
        line = b'{"ts":1.5,"event":"step","rank":0,"attempt":1,"step":%d,"loss":2.5,"lr":0.001}\n'
        path.write_bytes(b"".join(line % number for number in range(count)))
        (tmp_path / str(count)).mkdir()
        tracemalloc.start()
        try:
            made = write_tables(MetricsLines(path), tmp_path / str(count), silent)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert made == {"steps.csv": count}
    assert peaks[1] < peaks[0] + 500_000
