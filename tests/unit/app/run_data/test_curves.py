"""What is drawn holds every extreme that is in view, at a cost that does not grow with the rows."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.curves import Curve, mean_of, one_a_pixel, reduce_range, reduce_rows
from app.run_data.series import Series


def made(rows: int, seed: int = 0) -> tuple[Series, np.ndarray]:
    loss = np.random.default_rng(seed).normal(size=rows).cumsum()
    series = Series()
    series.append(rows, {"step": np.arange(1.0, rows + 1), "ts": np.arange(rows) / 10 + 1e9, "loss": loss})
    return series, loss


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
