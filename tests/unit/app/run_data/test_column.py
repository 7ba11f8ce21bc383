"""A column gives back exactly what went in, however it is spread over file and memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.run_data.column import BLOCK_ROWS, CHUNK_ROWS, BlockCache, Column
from app.run_data.pyramid import BIN, summarise

pytestmark = pytest.mark.windows


def file_column(folder: Path, values: np.ndarray, cache: BlockCache | None = None) -> Column:
    path = folder / "loss.f64"
    values.astype("<f8").tofile(path)
    return Column.of_file(path, len(values), cache or BlockCache(4))


@pytest.mark.parametrize("in_file", [0, 100, BLOCK_ROWS + 700])
def test_reads_across_file_and_chunks(tmp_path: Path, in_file: int) -> None:
    values = np.random.default_rng(1).normal(size=in_file + 2 * CHUNK_ROWS + 333)
    column = file_column(tmp_path, values[:in_file]) if in_file else Column()
    for part in np.array_split(values[in_file:], 7):
        column.append(part)
    assert column.rows == len(values)
    seams = (in_file, in_file + CHUNK_ROWS)
    for start, stop in ((0, len(values)), *((seam - 5, seam + 5) for seam in seams)):
        np.testing.assert_array_equal(column.read(start, stop), values[max(0, start) : stop])
    whole = len(values) // 512 * 512
    np.testing.assert_array_equal(column.pyramid.level(1)[:2], summarise(values[:whole], 512)[:2])


@pytest.mark.parametrize("change", ["none", "grown", "taken back"])
def test_bins_of_a_file_are_made_apart_and_taken_later(tmp_path: Path, change: str) -> None:
    values = np.random.default_rng(2).normal(size=BIN * 40 + 9)
    column = file_column(tmp_path, values)
    made = column.file_bins()
    assert not column.has_bins
    if change == "grown":
        column.append(np.ones(BIN * 3))
        values = np.append(values, np.ones(BIN * 3))
    if change == "taken back":
        column.truncate(BIN * 17 + 5)
        values = values[: BIN * 17 + 5]
    column.take_bins(made)
    assert column.has_bins
    whole = len(values) // BIN * BIN
    np.testing.assert_array_equal(column.pyramid.level(0)[:2], summarise(values[:whole], BIN)[:2])


def test_a_late_name_has_gaps_before_it() -> None:
    column = Column(missing=BIN * 3 + 10)
    column.append(np.ones(BIN))
    assert np.isnan(column.read(0, BIN * 3 + 10)).all()
    assert column.read(BIN * 3 + 10, BIN * 3 + 12).tolist() == [1.0, 1.0]
    assert column.pyramid.level(0)[0].tolist()[3] == 1.0


def test_truncated_inside_the_file_then_grown(tmp_path: Path) -> None:
    values = np.arange(5000.0)
    column = file_column(tmp_path, values)
    column.read(0, 5000)
    column.truncate(1234)
    (tmp_path / "loss.f64").write_bytes(values[:1234].astype("<f8").tobytes() + np.full(3000, -1.0).tobytes())
    column.append(np.full(2000, -1.0))
    expected = np.concatenate((values[:1234], np.full(2000, -1.0)))
    np.testing.assert_array_equal(column.read(0, column.rows), expected)
    np.testing.assert_array_equal(column.pyramid.level(0)[0], summarise(expected[: 12 * BIN], BIN)[0])


def test_truncated_inside_the_memory() -> None:
    column = Column()
    column.append(np.arange(3.0 * CHUNK_ROWS))
    column.truncate(CHUNK_ROWS)
    column.append(np.array([5.0]))
    assert column.read(CHUNK_ROWS - 1, CHUNK_ROWS + 9).tolist() == [CHUNK_ROWS - 1.0, 5.0]


def test_a_file_that_shrank_or_went_away_reads_as_gaps(tmp_path: Path) -> None:
    column = file_column(tmp_path, np.arange(2000.0))
    (tmp_path / "loss.f64").write_bytes(np.arange(500.0).tobytes())
    values = column.read(0, 2000)
    assert values[499] == 499
    assert np.isnan(values[500:]).all()
    (tmp_path / "loss.f64").unlink()
    gone = Column.of_file(tmp_path / "loss.f64", 2000, BlockCache(4))
    assert np.isnan(gone.read(0, 2000)).all() and np.isnan(gone.pyramid.level(0)).all()


def test_adopting_a_file_frees_memory_and_changes_nothing(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=3 * CHUNK_ROWS + 50)
    column = Column()
    column.append(values)
    before = column.pyramid.level(0).copy()
    values[: 2 * CHUNK_ROWS].tofile(tmp_path / "x.f64")
    column.adopt_file(tmp_path / "x.f64", 2 * CHUNK_ROWS, BlockCache())
    assert column._tail == CHUNK_ROWS + 50
    np.testing.assert_array_equal(column.read(0, column.rows), values)
    np.testing.assert_array_equal(column.pyramid.level(0), before)
    column.append(np.array([1.0]))
    assert column.read(column.rows - 1, column.rows)[0] == 1.0


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    cache = BlockCache(2)
    values = np.arange(4.0 * BLOCK_ROWS)
    column = file_column(tmp_path, values, cache)
    np.testing.assert_array_equal(column.read(0, len(values)), values)
    assert len(cache._blocks) == 2


@pytest.mark.parametrize("width", [2, 8, 64, 1024])
def test_bins_of_rows_are_the_same_kept_or_not(tmp_path: Path, width: int) -> None:
    """Over the seams of two whole blocks, a block that is not whole, and rows in memory; asked for twice."""
    values = np.random.default_rng(2).normal(size=2 * BLOCK_ROWS + 9000)
    values[70:900] = np.nan
    column = file_column(tmp_path, values[: 2 * BLOCK_ROWS + 5000])
    column.append(values[2 * BLOCK_ROWS + 5000 :])
    whole = len(values) // width * width
    for start, stop in (
        (0, whole),
        (BLOCK_ROWS - 1024, BLOCK_ROWS + 2048),
        (2 * BLOCK_ROWS, whole),
        (1024, 1024),
        (0, 0),
    ):
        for _ in range(2):
            np.testing.assert_array_equal(column.summary(start, stop, width), summarise(values[start:stop], width))


def test_bins_that_were_kept_are_forgotten_with_their_rows(tmp_path: Path) -> None:
    column = file_column(tmp_path, np.ones(2 * BLOCK_ROWS))
    column.summary(0, 2 * BLOCK_ROWS, 64)
    column.truncate(BLOCK_ROWS + 640)
    column.append(np.full(BLOCK_ROWS, 5.0))
    low, high, mean = column.summary(0, 2 * BLOCK_ROWS, 64)
    seam = (BLOCK_ROWS + 640) // 64
    assert [(part[seam - 1], part[seam]) for part in (low, high, mean)] == [(1.0, 5.0)] * 3


def test_bins_of_a_file_that_is_gone_or_short_are_gaps(tmp_path: Path) -> None:
    column = file_column(tmp_path, np.ones(2 * BLOCK_ROWS))
    (tmp_path / "loss.f64").write_bytes(np.ones(100).tobytes())
    assert np.isnan(column.summary(0, 2 * BLOCK_ROWS, 64)).sum() == 3 * (2 * BLOCK_ROWS // 64 - 2)
    (tmp_path / "loss.f64").unlink()
    gone = file_column(tmp_path, np.ones(BLOCK_ROWS))
    (tmp_path / "loss.f64").unlink()
    assert np.isnan(gone.summary(0, BLOCK_ROWS, 64)).all()


def test_bins_of_a_run_that_grows_are_those_of_all_its_rows() -> None:
    rows = np.random.default_rng(3).normal(size=5_000)
    rows[40:47] = np.nan
    column, made = Column(), 0
    for rows_now, width in ((64, 8), (68, 8), (1_000, 8), (1_000, 4), (3_000, 16), (900, 16), (2_000, 16), (5_000, 64)):
        if rows_now < made:  # resumed from there: other values follow
            column.truncate(rows_now)
            rows[rows_now:] += 1.0
        column.append(rows[column.rows : rows_now])
        made, stop = rows_now, rows_now // width * width
        assert np.array_equal(column.summary(0, stop, width), summarise(rows[:stop], width), equal_nan=True)
        half = stop // 2 // width * width
        assert np.array_equal(column.summary(0, half, width), summarise(rows[:half], width), equal_nan=True)
