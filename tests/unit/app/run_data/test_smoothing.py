"""The bold line: where a loss is, and nowhere else; the same at any place of the view."""

from __future__ import annotations

import numpy as np
import pytest

from app.run_data.curves import reduce_range
from app.run_data.series import Series
from app.run_data.smoothing import (
    half_width_rows,
    local_linear,
    smooth_line,
    smoothed,
    smoothed_at,
    without_outliers,
)


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
    _, bold = line(series_of(loss + rng.normal(scale=0.02, size=80)), 0, 80, 1200, 8.0)
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


def test_the_width_is_a_number_of_steps() -> None:
    every, tenth = Series(), Series()
    every.append(100, {"step": np.arange(1.0, 101.0)})
    tenth.append(100, {"step": np.arange(10.0, 1001.0, 10.0)})
    assert (half_width_rows(20, every), half_width_rows(20, tenth)) == (20.0, 2.0)
    assert half_width_rows(0, every) == half_width_rows(20, Series()) == 0.0


def noisy(rows: int) -> np.ndarray:
    return 2 + 8 * np.exp(-np.arange(rows) / 300) + np.random.default_rng(5).normal(scale=0.1, size=rows)


@pytest.mark.parametrize("half_width", [2.0, 20.0, 200.0])
def test_a_smoothed_value_is_that_of_the_line(half_width: float) -> None:
    loss = noisy(1500)
    loss[[40, 41, 700]] = np.nan
    series = series_of(loss)
    _, bold = line(series, 0, 1500, 2000, half_width)
    for place in (0, 3, 39, 44, 699, 1400, 1499):
        found = smoothed_at(series, "loss", "step", float(place), half_width)
        assert found == pytest.approx(bold[place], abs=1e-9), place
    assert smoothed_at(series, "loss", "step", -5.0, half_width) is None
    assert smoothed_at(series, "none", "step", 5.0, half_width) is None


@pytest.mark.parametrize("rows", [600, 40_000])
def test_the_line_is_the_same_in_any_window_and_zoom(rows: int) -> None:
    """Within what a pixel of many steps can show: bins of 64 rows against 200 on each side."""
    series = series_of(noisy(rows))
    places = np.linspace(0.3 * rows, 0.35 * rows, 5)
    found = []
    for pixels, low, high in ((300, 0, rows), (1500, 0, rows), (900, 0.25 * rows, 0.4 * rows)):
        curve, first = reduce_range(series, "loss", "step", low, high, 2 * pixels)
        bold = smooth_line(series, "loss", "step", curve, first, 200.0, pixels)
        found.append(np.interp(places, bold.x, bold.mean))
    exact = [smoothed_at(series, "loss", "step", place, 200.0) for place in places]
    np.testing.assert_allclose(found, [exact] * 3, atol=0.02)


def test_a_strong_line_reaches_both_edges_of_a_small_part() -> None:
    series = series_of(noisy(50_000))
    curve, first = reduce_range(series, "loss", "step", 20_000, 20_030, 1000)
    bold = smooth_line(series, "loss", "step", curve, first, 5000.0, 500)
    assert bold.x[0] <= 20_000 and bold.x[-1] >= 20_030
    assert np.isfinite(bold.mean).all() and bold.width * 128 >= 5000.0


@pytest.mark.parametrize("height", [5.0, 1e6, -50.0])
@pytest.mark.parametrize("long", [1, 3])
def test_a_spike_does_not_lift_the_line(height: float, long: int) -> None:
    loss = noisy(600)
    spiked = loss.copy()
    spiked[300 : 300 + long] += height
    for bins in (2000, 300):  # each row, and bins of two
        plain, bold = (line(series_of(values), 0, 600, bins, 20.0)[1] for values in (loss, spiked))
        assert np.abs(bold - plain).max() < 0.1, "less than the noise"
    assert smoothed_at(series_of(spiked), "loss", "step", 300.0, 20.0) == pytest.approx(2 + 8 * np.exp(-1), abs=0.15)


def test_what_is_no_spike_stays() -> None:
    jump = np.r_[np.full(50, 2.0), np.full(50, 9.0)] + np.random.default_rng(6).normal(scale=0.1, size=100)
    np.testing.assert_allclose(without_outliers(jump), jump, atol=0.3)
    rare = np.zeros(100)
    rare[::9] = 1.0
    np.testing.assert_array_equal(without_outliers(rare), rare)
    np.testing.assert_array_equal(without_outliers(np.array([1.0, 50.0, 1.0])), np.array([1.0, 50.0, 1.0]))
    gaps = np.array([np.nan, 1.0] * 20)
    np.testing.assert_array_equal(without_outliers(gaps), gaps)


def test_no_smoothing_gives_the_means() -> None:
    loss = np.random.default_rng(2).normal(size=50)
    x, bold = line(series_of(loss), 0, 50, 100, 0.0)
    np.testing.assert_array_equal(bold, loss)
    np.testing.assert_array_equal(x, np.arange(50.0))
