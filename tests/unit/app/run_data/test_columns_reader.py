"""A series over the files of a run's columns, and what they are reduced to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.run_data import column
from app.run_data.column import BlockCache
from app.run_data.columns_reader import adopt, open_series
from app.run_data.pyramid import BIN, summarise
from app.run_data.series import Series
from core.metrics.column_index import GroupIndex

pytestmark = pytest.mark.windows
ROWS = 3 * BIN + 7
VALUES = np.random.default_rng(3).normal(size=ROWS)


def group(folder: Path, values: np.ndarray, rows: int = ROWS) -> GroupIndex:
    (folder / "rank0").mkdir(exist_ok=True)
    values.astype("<f8").tofile(folder / "rank0" / "aux~2.f64")
    return GroupIndex("rank0", "rank0", rows, ("aux",), {"aux": "aux~2"})


@pytest.mark.parametrize("plotted", [(), ("aux", "not there")])
def test_a_series_has_the_rows_of_its_files(tmp_path: Path, plotted: tuple[str, ...]) -> None:
    index = group(tmp_path, np.concatenate((VALUES, [9.0])))  # a file may be longer than its index says
    series = open_series(tmp_path, index, BlockCache(4), plotted)
    assert series.rows == ROWS and set(series.columns) == {"aux"}
    np.testing.assert_array_equal(series.columns["aux"].read(0, ROWS + 5), VALUES)
    np.testing.assert_array_equal(series.columns["aux"].pyramid.level(0), summarise(VALUES[: 3 * BIN], BIN))


def test_a_series_that_grew_lets_go_of_what_the_files_hold(tmp_path: Path) -> None:
    series = Series()
    series.append(ROWS, {"aux": VALUES, "other": VALUES})
    aux, other = series.columns["aux"], series.columns["other"]
    adopt(series, tmp_path, group(tmp_path, np.zeros(ROWS + 1), ROWS + 1), BlockCache(4))
    assert aux.rows_in_memory == ROWS, "the files are ahead of what was read"
    adopt(series, tmp_path, group(tmp_path, VALUES[: 2 * BIN], 2 * BIN), BlockCache(4))
    assert (aux.rows_in_memory, other.rows_in_memory) == (ROWS - 2 * BIN, ROWS)
    np.testing.assert_array_equal(aux.read(0, ROWS), VALUES)
    adopt(Series(), tmp_path, GroupIndex("rank0", "rank0", 0, ("new",)), BlockCache(4))  # no such column was read yet


def test_bins_leave_out_what_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = VALUES.copy()
    values[3:9] = np.nan
    values[BIN : 2 * BIN] = np.nan
    monkeypatch.setattr(column, "SLICE_ROWS", 2 * BIN)
    series = open_series(tmp_path, group(tmp_path, values), BlockCache(4))
    low, high, mean = series.columns["aux"].pyramid.level(0)
    assert (low[0], high[0]) == (np.nanmin(values[:BIN]), np.nanmax(values[:BIN]))
    assert mean[0] == pytest.approx(np.nanmean(values[:BIN])) and np.isnan([low[1], high[1], mean[1]]).all()
    assert mean[2] == pytest.approx(values[2 * BIN : 3 * BIN].mean()) and len(mean) == 3


def test_a_file_that_is_gone_or_short_has_no_bins(tmp_path: Path) -> None:
    index = group(tmp_path, VALUES[:BIN])
    means = open_series(tmp_path, index, BlockCache(4)).columns["aux"].pyramid.level(0)[2]
    assert not np.isnan(means[0]) and np.isnan(means[1:]).all() and len(means) == 3
    (tmp_path / "rank0" / "aux~2.f64").unlink()
    assert np.isnan(open_series(tmp_path, index, BlockCache(4)).columns["aux"].pyramid.level(0)).all()
