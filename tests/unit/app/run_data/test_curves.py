"""What is drawn holds every extreme that is in view, at a cost that does not grow with the rows."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.curves import Curve, mean_of, one_a_pixel, reduce_range, reduce_rows, smooth
from app.run_data.series import Series


def made(rows: int, seed: int = 0) -> tuple[Series, np.ndarray]:
    loss = np.random.default_rng(seed).normal(size=rows).cumsum()
    series = Series()
    series.append(rows, {"step": np.arange(1.0, rows + 1), "ts": np.arange(rows) / 10 + 1e9, "loss": loss})
    return series, loss


def smoothed(series: Series, low: float, high: float, bins: int, half_life: float) -> tuple[np.ndarray, np.ndarray]:
    curve, first = reduce_range(series, "loss", "step", low, high, bins)
    return curve.x, smooth(series, "loss", "step", curve, first, half_life)


@pytest.mark.parametrize("rows", [1, 2, 255, 256, 257, 1000, 70_001])
@pytest.mark.parametrize("bins", [7, 300])
def test_extremes_are_those_of_the_rows(rows: int, bins: int) -> None:
    series, loss = made(rows)
    curve = reduce_rows(series, "loss", "step", 0, rows, bins)
    assert len(curve.x) <= max(bins, 1) + 1
    assert (np.nanmin(curve.low), np.nanmax(curve.high)) == (loss.min(), loss.max())
    for i in (0, len(curve.x) // 2, len(curve.x) - 1):
        part = loss[i * curve.width : (i + 1) * curve.width]
        assert (curve.low[i], curve.high[i]) == (part.min(), part.max())
        assert curve.mean[i] == pytest.approx(part.mean())
        assert i * curve.width + 1 <= curve.x[i] <= (i + 1) * curve.width
    assert bool((np.diff(curve.x) >= 0).all())


def test_bins_do_not_move_with_the_view() -> None:
    series, _ = made(100_000)
    one, _ = reduce_range(series, "loss", "step", 20_000, 60_000, 100)
    other, _ = reduce_range(series, "loss", "step", 20_321, 60_321, 100)
    shared = np.intersect1d(one.x, other.x)
    assert len(shared) > 70
    np.testing.assert_array_equal(one.low[np.isin(one.x, shared)], other.low[np.isin(other.x, shared)])


def test_few_rows_are_drawn_as_they_are_with_a_neighbour_on_both_sides() -> None:
    series, loss = made(5000)
    curve, first = reduce_range(series, "loss", "step", 100, 110, 500)
    assert (curve.width, first) == (1, 98)
    np.testing.assert_array_equal(curve.x, np.arange(99.0, 112.0))
    np.testing.assert_array_equal(curve.low, loss[98:111])


def test_gaps_stay_gaps() -> None:
    series = Series()
    loss = np.ones(1000)
    loss[300:700] = np.nan
    series.append(1000, {"step": np.arange(1000.0), "loss": loss})
    curve = reduce_rows(series, "loss", "step", 0, 1000, 100)
    assert np.isnan(curve.low[30])
    _, line = smoothed(series, 0, 1000, 100, 10.0)
    assert np.isnan(line[30])
    assert line[-1] == pytest.approx(1.0)


def test_a_smoothed_constant_is_that_constant_from_its_first_point() -> None:
    series = Series()
    series.append(5000, {"step": np.arange(5000.0), "loss": np.full(5000, 3.0)})
    _, line = smoothed(series, 0, 5000, 700, 400.0)
    np.testing.assert_allclose(line, 3.0)


def test_the_smoothed_line_is_the_same_at_every_zoom() -> None:
    rng = np.random.default_rng(4)
    rows = 200_000
    series = Series()
    loss = 2 + np.exp(-np.arange(rows) / 4e4) + rng.normal(size=rows)
    series.append(rows, {"step": np.arange(float(rows)), "loss": loss})
    wide_x, wide = smoothed(series, 0, rows, 1000, 5000.0)
    near_x, near = smoothed(series, 100_000, 101_000, 1000, 5000.0)
    at = np.interp(near_x, wide_x, wide)
    assert np.abs(at - near).max() < 0.02  # the noise itself has a deviation of 1


def test_smoothing_by_rows_is_the_exponential_moving_average() -> None:
    series, loss = made(300)
    _, line = smoothed(series, 0, 300, 1000, 20.0)
    keep, value, weight, expected = 0.5 ** (1 / 20), 0.0, 0.0, []
    for point in loss:
        value, weight = keep * value + (1 - keep) * point, keep * weight + (1 - keep)
        expected.append(value / weight)
    np.testing.assert_allclose(line, expected)


@pytest.mark.parametrize("half_life", [0.9, 3.0, 40.0, 5000.0])
def test_the_average_is_the_same_over_gaps_and_over_the_seams_of_blocks(half_life: float) -> None:
    """Against the recursion, value by value; a short half-life is summed in many blocks."""
    series, loss = made(3000)
    gaps = np.random.default_rng(3).random(3000) < 0.2
    series.columns["loss"].truncate(0)
    series.columns["loss"].append(np.where(gaps, np.nan, loss))
    _, line = smoothed(series, 1, 3000, 5000, half_life)
    keep, value, weight, expected = 0.5 ** (1 / half_life), 0.0, 0.0, np.full(3000, np.nan)
    for row in np.flatnonzero(~gaps):
        value, weight = keep * value + (1 - keep) * loss[row], keep * weight + 1 - keep
        expected[row] = value / weight
    np.testing.assert_allclose(line, expected, rtol=1e-9)


@pytest.mark.parametrize("first", [4000, 4002, 4010])
def test_one_bin_a_pixel_is_what_the_next_grid_has(first: int) -> None:
    series, _ = made(50_000)
    curve, start = reduce_rows(series, "loss", "step", first // 2 * 2, 12_000, 5000), first // 2 * 2
    thin, row = one_a_pixel(curve, start, 2500)
    wide = reduce_rows(series, "loss", "step", first, 12_000, 2500)
    assert (thin.width, row) == (wide.width, first // wide.width * wide.width)
    inner = slice(1, -1)
    for part in ("x", "low", "high", "mean"):
        np.testing.assert_allclose(getattr(thin, part)[inner], getattr(wide, part)[inner])
    assert one_a_pixel(curve, start, len(curve.x)) == (curve, start)


def test_no_smoothing_gives_the_means() -> None:
    series, loss = made(50)
    x, line = smoothed(series, 0, 50, 100, 0.0)
    np.testing.assert_array_equal(line, loss)
    np.testing.assert_array_equal(x, np.arange(1.0, 51.0))


def curve(x: list[float], y: list[float]) -> Curve:
    values = np.array(y)
    return Curve(np.array(x), values, values, values, 1)


def test_mean_over_ranks_is_aligned_by_step() -> None:
    mean = mean_of([curve([1, 2, 3, 4], [1, 1, 1, 1]), curve([2, 4], [3, 5])])
    assert mean.x.tolist() == [1, 2, 3, 4]
    assert mean.mean.tolist() == [1, 2, 1, 3]


def test_a_step_that_not_every_rank_has_reached_waits() -> None:
    mean = mean_of([curve([1, 2, 3], [1, 1, 1]), curve([1, 2], [3, 3])])
    assert mean.x.tolist() == [1, 2]


def test_a_rank_that_ended_early_does_not_cut_the_others() -> None:
    steps = [float(s) for s in range(1, 21)]
    mean = mean_of([curve(steps, [1.0] * 20), curve([1, 2], [3, 3])])
    assert mean.x[-1] == 20
    assert mean.mean[[0, -1]].tolist() == [2, 1]


def test_mean_with_gaps_and_of_nothing() -> None:
    mean = mean_of([curve([1, 2], [1, np.nan]), curve([1, 2], [3, 5])])
    assert mean.mean.tolist() == [2, 5]
    assert len(mean_of([]).x) == 0
