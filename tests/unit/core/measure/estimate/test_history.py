"""Memory of runs, predicted and measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.measure.estimate.history import MEMORY, RunMemory, history, read_memory
from core.run_folder.store import RunStore


def test_the_largest_rank_counts_and_peaks_only_grow() -> None:
    memory = RunMemory("ddp", 1100).with_peaks(0, {"rss_bytes": 900}).with_peaks(1, {"rss_bytes": 1000})
    memory = memory.with_peaks(1, {"rss_bytes": 950, "step": 3, "event": "memory"})
    assert memory.ranks == {0: {"rss_bytes": 900}, 1: {"rss_bytes": 1000}}
    assert memory.measured_bytes == 1000
    assert memory.error == pytest.approx(0.1)


def test_a_gpus_figure_is_what_pytorch_reserved() -> None:
    peaks = {"rss_bytes": 3000, "allocated_bytes": 800, "reserved_bytes": 1000}
    assert RunMemory("single", 900).with_peaks(0, peaks).error == pytest.approx(-0.1)


def test_without_a_prediction_or_a_measurement_there_is_no_error() -> None:
    assert RunMemory().with_peaks(0, {"rss_bytes": 5}).error is None
    assert RunMemory("ddp", 5).error is None


def test_runs_are_rows(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    RunStore.create(tmp_path, RunConfig())  # keeps nothing
    RunMemory("zero1", 1200).with_peaks(0, {"rss_bytes": 1000}).write(store.dir)
    (row,) = history(tmp_path)
    assert (row["run"], row["mode"], row["ranks"]) == (store.dir.name, "zero1", 1)
    assert (row["predicted_bytes"], row["measured_bytes"]) == (1200, 1000)
    assert row["error"] == pytest.approx(0.2)


@pytest.mark.parametrize("text", ["", "[]", "{}x", '{"predicted_bytes": -1}', '{"ranks": {"a": {}}}'])
def test_a_damaged_file_is_no_row(tmp_path: Path, text: str) -> None:
    (tmp_path / MEMORY).write_text(text, encoding="utf-8")
    assert read_memory(tmp_path) is None
