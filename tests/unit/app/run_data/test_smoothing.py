"""The bold line: where a loss is, and nowhere else; the same at any place of the view."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.curves import reduce_range
from app.run_data.series import Series
from app.run_data.smoothing import half_width_rows, local_linear, smoothed


def series_of(loss: np.ndarray) -> Series:
    series = Series()
    series.append(len(loss), {"step": np.arange(float(len(loss))), "loss": loss})
    return series


def line(series: Series, low: float, high: float, bins: int, half_width: float) -> tuple[np.ndarray, np.ndarray]:
    curve, first = reduce_range(series, "loss", "step", low, high, bins)
    return curve.x, smoothed(series, "loss", curve, first, half_width)


@pytest.mark.parametrize("half_width", [0.6, 1.0, 7.3, 40.0, 400.0])
def test_a_straight_line_stays_itself_up_to_both_ends(half_width: float) -> None:
    values = 3.0 - 0.25 * np.arange(200.0)
    np.testing.assert_allclose(local_linear(values, half_width), values, atol=1e-9)


def test_a_falling_loss_ends_where_it_is() -> None:
    """80 steps from 5 to 0.2: an average with a half-life of 20 steps ended at 0.35."""
    rng = np.random.default_rng(0)
    loss = 0.2 + 4.8 * np.exp(-np.arange(80.0) / 12)
    _, bold = line(series_of(loss + rng.normal(scale=0.02, size=80)), 0, 80, 1200, half_width_rows(32, 80, 1200))
    assert bold[-1] == pytest.approx(loss[-1], abs=0.03)
    assert bold[0] == pytest.approx(loss[0], abs=0.2)


def test_a_throughput_that_falls_at_the_end_does_not_become_negative() -> None:
    throughput = np.r_[np.full(60, 900.0), np.full(8, 40.0)]
    _, alone = np.polyfit(np.arange(-20.0, 1.0), throughput[-21:], 1)
    assert alone < 0, "a fit alone would"
    assert local_linear(throughput, 20.0)[-1] == 40.0
    assert local_linear(-throughput, 20.0)[-1] == -40.0


def test_it_is_the_weighted_fit_of_numpy() -> None:
    values = np.random.default_rng(1).normal(size=60).cumsum()
    values[[3, 20, 21, 22, 59]] = np.nan
    found, half_width = local_linear(values, 9.0), 9.0
    for place in (0, 2, 19, 30, 58):
        near = np.arange(max(0, place - 9), min(60, place + 10))
        near = near[np.isfinite(values[near])]
        weights = (1 - (np.abs(near - place) / (half_width + 1)) ** 3) ** 3
        _, level = np.polyfit(near - place, values[near], 1, w=np.sqrt(weights))
        assert found[place] == pytest.approx(np.clip(level, values[near].min(), values[near].max()))
    assert np.isnan(found[[3, 20, 21, 22, 59]]).all()


def test_gaps_and_single_points_stay() -> None:
    values = np.full(50, np.nan)
    values[10] = 4.0
    found = local_linear(values, 5.0)
    assert found[10] == pytest.approx(4.0)
    assert np.isnan(np.delete(found, 10)).all()
    assert np.isnan(local_linear(np.array([1.0, np.inf, 1.0]), 2.0)).tolist() == [False, True, False]


def test_the_line_does_not_depend_on_where_the_view_ends() -> None:
    rows = 200_000
    loss = 2 + np.exp(-np.arange(rows) / 4e4) + np.random.default_rng(4).normal(size=rows)
    series = series_of(loss)
    x, bold = line(series, 50_000, 150_000, 1000, 4000.0)
    moved_x, moved = line(series, 60_000, 160_000, 1000, 4000.0)
    shared = np.intersect1d(x, moved_x)
    assert len(shared) > 300
    np.testing.assert_allclose(bold[np.isin(x, shared)], moved[np.isin(moved_x, shared)], rtol=1e-9)


def test_it_smooths_what_is_visible_alike_at_any_zoom() -> None:
    widths = [half_width_rows(32, rows, 1000) / rows for rows in (80, 1000, 10_000, 1_000_000)]
    assert max(widths) <= 2 * min(widths)
    assert half_width_rows(0, 1000, 1000) == half_width_rows(32, 0, 1000) == 0.0


def test_no_smoothing_gives_the_means() -> None:
    loss = np.random.default_rng(2).normal(size=50)
    x, bold = line(series_of(loss), 0, 50, 100, 0.0)
    np.testing.assert_array_equal(bold, loss)
    np.testing.assert_array_equal(x, np.arange(50.0))
