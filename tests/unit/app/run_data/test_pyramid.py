"""The pyramid against NumPy on the whole column."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.pyramid import BIN, Pyramid


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
