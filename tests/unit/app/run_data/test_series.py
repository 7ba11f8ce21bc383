"""Finding rows by step and by time."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.series import Series


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


def test_empty_series_has_no_bounds() -> None:
    assert Series().bounds("step") is None
    assert Series().last("loss") is None
    assert Series().row_at("step", 3.0) == 0
