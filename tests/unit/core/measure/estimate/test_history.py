"""Memory and time of runs, predicted and measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.measure.estimate.history import (
    MEMORY,
    TIME,
    RunMemory,
    RunTime,
    history,
    read_memory,
    read_time,
)
from core.measure.estimate.shape import run_shape
from core.measure.estimate.speed import PastRun
from core.measure.estimate.steps import past_runs
from core.run_folder.store import RunStore
from tests.helpers.resolved_run import resolved_run


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


CONFIG = RunConfig(batch_size=8, steps=3, precision="fp32")
RUN = resolved_run(CONFIG, Mode.DDP, 2)
LINE = {"event": "step", "step_time_s": 0.5, "samples_per_s": 16.0}


def heard(time: RunTime, steps: int = 8, ranks: int = 2, **changes: Any) -> RunTime:
    for _ in range(steps):
        for rank in range(ranks):
            time = time.with_line(rank, {**LINE, **changes})
    return time


def kept(folder: Path, time: RunTime, **state: Any) -> RunStore:
    store = RunStore.create(folder, CONFIG)
    store.write_state(store.state().replace(state="finished", **state))
    time.write(store.dir)
    return store


def test_a_run_is_as_fast_as_its_steps_after_the_first() -> None:
    time = RunTime("shape", "probe", 0.6, 30.0, 1.5, one_samples_per_s=20.0)
    time = heard(time, 3, step_time_s=9.0)  # settling
    assert (time.step_s, time.samples_per_s, time.speedup, time.error) == (None,) * 4
    time = heard(time, 5)
    assert time.step_s == pytest.approx(0.5)
    assert time.samples_per_s == pytest.approx(32.0)
    assert time.speedup == pytest.approx(1.6)
    assert time.error == pytest.approx(0.2)
    assert heard(RunTime("shape")).error is None
    assert heard(RunTime("shape"), ranks=1).speedup is None, "there is nothing to compare with"


@pytest.mark.parametrize("line", [{}, {"step_time_s": None}, {"step_time_s": -1.0}, {"step_time_s": float("inf")}])
def test_a_line_without_a_time_does_not_count(line: dict[str, Any]) -> None:
    values = {"samples_per_s": 1.0, **line}
    assert RunTime("shape").with_line(0, values) == RunTime("shape")


def test_a_shape_is_all_that_a_steps_time_depends_on() -> None:
    same = [CONFIG.replace(steps=9), CONFIG.replace(lr=0.5), CONFIG.replace(seed=4)]
    assert {run_shape(resolved_run(config, Mode.DDP, 2)) for config in same} == {run_shape(RUN)}
    others = [
        resolved_run(CONFIG.replace(batch_size=4), Mode.DDP, 2),
        resolved_run(CONFIG.replace(grad_accum_steps=2), Mode.DDP, 2),
        resolved_run(CONFIG.replace(seq_len=7), Mode.DDP, 2),
        replace(RUN, config=RUN.config.replace(options={"n_layer": 3})),
        resolved_run(CONFIG.replace(gradient_exchange="plain"), Mode.DDP, 2),
        resolved_run(CONFIG, Mode.DDP, 3),
        resolved_run(CONFIG, Mode.INDEPENDENT, 2),
        resolved_run(CONFIG.replace(sync_every=8), Mode.INDEPENDENT, 2),
        resolved_run(CONFIG, Mode.SINGLE, 1),
    ]
    assert len({run_shape(RUN), *map(run_shape, others)}) == len(others) + 1


def test_the_newest_finished_run_of_each_mode_is_taken(tmp_path: Path) -> None:
    alone = resolved_run(CONFIG, Mode.SINGLE, 1)
    older = kept(tmp_path, heard(RunTime(run_shape(RUN)), step_time_s=9.0))
    os.utime(older.dir / TIME, (1.0, 1.0))
    kept(tmp_path, heard(RunTime(run_shape(RUN))))
    kept(tmp_path, heard(RunTime(run_shape(RUN)), 4))  # too short
    kept(tmp_path, heard(RunTime("another shape")))
    kept(tmp_path, heard(RunTime(run_shape(alone)), ranks=1))
    past = past_runs(RUN, tmp_path)
    assert set(past) == {"ddp", "single"}
    assert past["single"] == PastRun(0.5, 16.0)
    assert past["ddp"] == PastRun(0.5, 32.0)
    assert past_runs(replace(RUN, config=CONFIG.replace(mode=Mode.DDP, seq_len=5)), tmp_path) == {}
    assert past_runs(RUN, tmp_path / "none") == {}


def test_history_has_memory_and_time_of_each_run(tmp_path: Path) -> None:
    both = kept(tmp_path, heard(RunTime("s", "runs", 0.55, 32.0, 1.5, 20.0)))
    RunMemory("ddp", 1200).with_peaks(0, {"rss_bytes": 1000}).write(both.dir)
    old = RunStore.create(tmp_path, CONFIG)
    RunMemory("ddp", 1200).with_peaks(0, {"rss_bytes": 1000}).write(old.dir)
    rows = {row["run"]: row for row in history(tmp_path)}
    row = rows[both.dir.name]
    assert (row["predicted_bytes"], row["predicted_step_s"], row["predicted_from"]) == (1200, 0.55, "runs")
    assert row["time_error"] == pytest.approx(0.1)
    assert (row["predicted_speedup"], row["measured_speedup"]) == (1.5, pytest.approx(1.6))
    assert rows[old.dir.name]["measured_step_s"] is None and rows[old.dir.name]["error"] is not None


@pytest.mark.parametrize("text", ["", "[]", '{"ranks": {"0": {"seconds": -1}}}', '{"predicted_step_s": "x"}'])
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / TIME).write_text(text, encoding="utf-8")
    assert read_time(tmp_path) is None
