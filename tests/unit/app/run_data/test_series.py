"""Finding rows by step and by time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.run_data import column
from app.run_data.column import BlockCache
from app.run_data.pyramid import BIN, summarise
from app.run_data.series import Series
from core.metrics.column_index import GroupIndex

ROWS = 3 * BIN + 7
VALUES = np.random.default_rng(3).normal(size=ROWS)


def series_of(steps: np.ndarray, **more: np.ndarray) -> Series:
    series = Series()
    for part in np.array_split(np.arange(len(steps)), 5):
        series.append(len(part), {"step": steps[part], **{name: values[part] for name, values in more.items()}})
    return series


@pytest.mark.parametrize("side", ["left", "right"])
def test_row_at_is_searchsorted(side: str) -> None:
    steps = np.sort(np.random.default_rng(0).integers(0, 3000, size=2500)).astype(float)
    series = series_of(steps)
    for value in (-1, 0, 17, 17.5, 1500, 2999, 5000, *steps[[255, 256, 257, 511, 512]]):
        assert series.row_at("step", value, side) == np.searchsorted(steps, value, side)


def test_a_counter_that_starts_again_counts_as_the_highest_so_far() -> None:
    steps = np.concatenate((np.arange(700.0), np.arange(700.0), np.arange(700.0, 900.0)))
    series = series_of(steps)
    expected = np.maximum.accumulate(steps)
    for value in (3, 698, 699, 750, 899):
        assert series.row_at("step", value) == np.searchsorted(expected, value)
    assert series.bounds("step") == (0.0, 899.0)


def test_truncate_after_keeps_the_step_itself() -> None:
    series = series_of(np.arange(1.0, 1001.0), loss=np.arange(1000.0))
    series.truncate_after(600)
    assert (series.rows, series.last("loss"), series.bounds("step")) == (600, 599.0, (1.0, 600.0))
    series.append(1, {"step": np.array([601.0]), "loss": np.array([-5.0])})
    assert series.value_at("loss", "step", 601) == -5.0


def test_names_that_come_late_or_stay_away_are_gaps() -> None:
    series = Series()
    series.append(2, {"step": np.array([1.0, 2.0]), "loss": np.array([5.0, 4.0])})
    series.append(2, {"step": np.array([3.0, 4.0]), "lr": np.array([0.1, 0.2])})
    assert np.isnan(series.columns["lr"].read(0, 2)).all()
    assert np.isnan(series.columns["loss"].read(2, 4)).all()
    assert series.last("loss") == 4.0
    assert series.value_at("loss", "step", 3) is None
    assert series.value_at("loss", "step", 0.5) is None


def test_bounds_follow_the_rows() -> None:
    series = Series()
    assert series.bounds("step") is None and series.last("loss") is None and series.row_at("step", 3.0) == 0
    series.append(2, {"step": np.array([1.0, 2.0])})
    assert series.bounds("step") == (1, 2) and series.bounds("ts") is None
    series.append(1, {"step": np.array([3.0]), "ts": np.array([9.0])})
    assert series.bounds("step") == (1, 3)
    series.truncate(1)
    assert series.bounds("step") == (1, 1)


def group(folder: Path, values: np.ndarray, rows: int = ROWS) -> GroupIndex:
    (folder / "rank0").mkdir(exist_ok=True)
    values.astype("<f8").tofile(folder / "rank0" / "aux~2.f64")
    return GroupIndex("rank0", "rank0", rows, ("aux",), {"aux": "aux~2"})


def test_a_series_has_the_rows_of_its_files(tmp_path: Path) -> None:
    index = group(tmp_path, np.concatenate((VALUES, [9.0])))  # a file may be longer than its index says
    series = Series.of_files(tmp_path, index, BlockCache(4))
    assert series.rows == ROWS and set(series.columns) == {"aux"}
    np.testing.assert_array_equal(series.columns["aux"].read(0, ROWS + 5), VALUES)
    np.testing.assert_array_equal(series.columns["aux"].pyramid.level(0), summarise(VALUES[: 3 * BIN], BIN))


def test_a_series_that_grew_lets_go_of_what_the_files_hold(tmp_path: Path) -> None:
    series = Series()
    series.append(ROWS, {"aux": VALUES, "other": VALUES})
    aux, other = series.columns["aux"], series.columns["other"]
    series.adopt_files(tmp_path, group(tmp_path, np.zeros(ROWS + 1), ROWS + 1), BlockCache(4))
    assert aux._tail == ROWS, "the files are ahead of what was read"
    series.adopt_files(tmp_path, group(tmp_path, VALUES[: 2 * BIN], 2 * BIN), BlockCache(4))
    assert (aux._tail, other._tail) == (ROWS - 2 * BIN, ROWS)
    np.testing.assert_array_equal(aux.read(0, ROWS), VALUES)
    Series().adopt_files(
        tmp_path, GroupIndex("rank0", "rank0", 0, ("new",)), BlockCache(4)
    )  # no such column was read yet


def test_bins_leave_out_what_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = VALUES.copy()
    values[3:9] = np.nan
    values[BIN : 2 * BIN] = np.nan
    monkeypatch.setattr(column, "SLICE_ROWS", 2 * BIN)
    series = Series.of_files(tmp_path, group(tmp_path, values), BlockCache(4))
    low, high, mean = series.columns["aux"].pyramid.level(0)
    assert (low[0], high[0]) == (np.nanmin(values[:BIN]), np.nanmax(values[:BIN]))
    assert mean[0] == pytest.approx(np.nanmean(values[:BIN])) and np.isnan([low[1], high[1], mean[1]]).all()
    assert mean[2] == pytest.approx(values[2 * BIN : 3 * BIN].mean()) and len(mean) == 3


@pytest.mark.parametrize("slice_rows", [BIN, 1 << 18])
def test_a_file_that_is_gone_or_short_has_no_bins(
    slice_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column, "SLICE_ROWS", slice_rows)
    index = group(tmp_path, VALUES[:BIN])
    means = Series.of_files(tmp_path, index, BlockCache(4)).columns["aux"].pyramid.level(0)[2]
    assert not np.isnan(means[0]) and np.isnan(means[1:]).all() and len(means) == 3
    (tmp_path / "rank0" / "aux~2.f64").unlink()
    assert np.isnan(Series.of_files(tmp_path, index, BlockCache(4)).columns["aux"].pyramid.level(0)).all()


def test_mean_and_peak_of_all_that_is_known() -> None:
    series = Series()
    values = np.arange(1000.0)
    values[-3:] = np.nan
    series.append(1000, {"busy": values})
    assert series.mean("busy") == pytest.approx(np.nanmean(values)) and series.peak("busy") == 996
    assert series.mean("heat") is None and series.peak("heat") is None
