"""The pyramid against NumPy on the whole column."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.pyramid import BIN, Pyramid, summarise


@pytest.fixture
def rows() -> np.ndarray:
    values = np.random.default_rng(3).normal(size=BIN * 37)
    values[BIN * 4 : BIN * 5] = np.nan
    values[::17] = np.nan
    return values


@pytest.mark.parametrize("level", [0, 1, 2, 5])
def test_level_is_min_max_mean_of_its_rows(rows: np.ndarray, level: int) -> None:
    pyramid = Pyramid()
    pyramid.extend(rows)
    width = BIN << level
    whole = rows[: len(rows) // width * width].reshape(-1, width)
    low, high, mean = pyramid.level(level)
    assert len(low) == len(rows) // width
    for i, part in enumerate(whole):
        if np.isnan(part).all():
            assert np.isnan([low[i], high[i], mean[i]]).all()
            continue
        assert (low[i], high[i]) == (np.nanmin(part), np.nanmax(part))
        assert mean[i] == pytest.approx(np.nanmean(part), abs=0.02)


def test_extending_piecewise_gives_what_extending_at_once_gives(rows: np.ndarray) -> None:
    whole, pieces = Pyramid(), Pyramid()
    whole.extend(rows)
    for start in range(0, len(rows), 3 * BIN):
        pieces.extend(rows[start : start + 3 * BIN])
        pieces.level(3)
    np.testing.assert_array_equal(whole.level(3), pieces.level(3))


def test_truncating_forgets_upper_levels_that_held_what_is_gone(rows: np.ndarray) -> None:
    pyramid, fresh = Pyramid(), Pyramid()
    pyramid.extend(rows)
    pyramid.level(4)
    pyramid.truncate(17)
    pyramid.extend(rows[: 15 * BIN])
    fresh.extend(np.concatenate((rows[: 17 * BIN], rows[: 15 * BIN])))
    np.testing.assert_array_equal(pyramid.level(4), fresh.level(4))


def test_means_of_loaded_bins_come_later_and_reach_upper_levels(rows: np.ndarray) -> None:
    summary = summarise(rows, BIN)
    pyramid = Pyramid()
    pyramid.load(summary[0], summary[1])
    pyramid.extend(rows[: 3 * BIN])
    assert np.isnan(pyramid.level(2)[2, 0])
    assert not pyramid.has_means
    pyramid.set_means(summary[2])
    assert pyramid.has_means
    assert pyramid.level(2)[2, 0] == pytest.approx(np.nanmean(rows[: 4 * BIN]), abs=0.02)


@pytest.mark.parametrize("newer", [0, 1, 6, 7])
def test_levels_made_before_their_means_are_those_made_after(rows: np.ndarray, newer: int) -> None:
    """Also where a bin of a level holds the last mean of the file and the first bin that is newer."""
    summary = summarise(rows[: len(rows) // BIN * BIN], BIN)
    summary[2, 4:6] = np.nan  # gaps
    early, late = Pyramid(), Pyramid()
    for pyramid in (early, late):
        pyramid.load(summary[0], summary[1])
        pyramid.extend(np.full(newer * BIN, 7.0))
    early.level(4)
    early.make_ready()
    for pyramid in (early, late):
        pyramid.set_means(summary[2])
    for level in range(6):
        np.testing.assert_array_equal(early.level(level), late.level(level))
    assert np.isnan(early.level(1)[2, 2]) and not np.isnan(early.level(2)[2]).any()


def test_means_that_come_after_a_truncation_leave_newer_bins_alone(rows: np.ndarray) -> None:
    summary = summarise(rows, BIN)
    pyramid = Pyramid()
    pyramid.load(summary[0], summary[1])
    pyramid.truncate(10)
    pyramid.extend(np.full(2 * BIN, 7.0))
    pyramid.set_means(summary[2])
    assert pyramid.level(0)[2, 10] == 7.0
    assert pyramid.level(0)[2, 9] == summary[2, 9]
