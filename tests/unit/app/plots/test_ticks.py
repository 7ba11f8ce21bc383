"""Ticks at round places, with labels that can be told apart."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from PySide6.QtGui import QFont, QFontMetricsF

from app.plots.axes import TimeTicks, ValueAxis
from app.plots.ticks import clock, labels, log_values, multiples, short, spacing_of_time
from app.plots.time_axis import TimeAxis
from app.run_data.series import XAxis

pytestmark = pytest.mark.usefixtures("qapp")


def values_axis(low: float, high: float, *, log: bool = False, unit: str = "") -> ValueAxis:
    axis = ValueAxis()
    axis.setTickFont(QFont())
    axis.unit = unit
    axis.setLogMode(log)
    axis.setRange(low, high)
    return axis


def texts(found: list[tuple[float, str]]) -> list[str]:
    return [text for _, text in found]


@pytest.mark.parametrize(
    ("values", "spacing", "expected"),
    [
        ([0, 2, 4], 2, ["0", "2", "4"]),
        ([1.45, 1.5, 1.55], 0.05, ["1.45", "1.50", "1.55"]),
        ([-0.5, 0, 0.5], 0.5, ["-0.5", "0", "0.5"]),
        ([0, 50_000, 100_000], 50_000, ["0", "50 k", "100 k"]),
        ([0, 0.0001, 0.0002], 0.0001, ["0", "0.0001", "0.0002"]),
        ([1e-7, 2e-7], 1e-7, ["1e-7", "2e-7"]),
        ([], 1, []),
    ],
)
def test_labels_have_the_same_decimals_and_prefix(values: list[float], spacing: float, expected: list[str]) -> None:
    assert labels(values, spacing) == expected


def test_long_labels_of_values_are_written_with_a_power_of_ten() -> None:
    found = texts(values_axis(0.00099, 0.00101).labelled(100))
    assert all(len(text) <= 8 and "e-" in text for text in found), found
    assert "0.0002" in texts(values_axis(0, 0.001).labelled(100))


def test_multiples_are_within_their_bounds() -> None:
    assert multiples(0, 1, 0.25) == [0, 0.25, 0.5, 0.75, 1]
    assert multiples(2.5, 3.4, 1) == [3]
    assert multiples(math.nan, 5, 1) == multiples(0, math.inf, 1) == multiples(0, 1, 0) == []


def test_labels_can_be_told_apart_anywhere() -> None:
    chance = random.Random(1)
    for _ in range(150):
        low = chance.choice((0.0, -1.0, 1.0)) * 10 ** chance.uniform(-5, 9)
        high = low + 10 ** chance.uniform(-3, 6) * max(1e-3, abs(low))
        found = values_axis(low, high).labelled(chance.uniform(60, 400))
        assert len(set(texts(found))) == len(found)
        assert 1 <= len(found) <= 20
        assert all(low - 1e-6 * (high - low) <= value <= high + 1e-6 * (high - low) for value, _ in found)


def test_seconds_are_shown_as_milliseconds_where_that_is_shorter() -> None:
    assert texts(values_axis(0, 0.15, unit="s").labelled(120))[:2] == ["0 ms", "50 ms"]
    assert texts(values_axis(0, 15, unit="s").labelled(120))[:2] == ["0 s", "5 s"]


def test_whole_steps_only() -> None:
    time_axis = TimeAxis()
    axis = TimeTicks(time_axis)
    axis.setTickFont(QFont())
    for low, high in ((0, 3), (0, 50_000), (7, 9)):
        axis.setRange(low, high)
        found = axis.labelled(600)
        assert len(found) >= 2 and all(value == int(value) for value, _ in found)
        assert len({b - a for (a, _), (b, _) in pairwise(found)}) == 1


@pytest.mark.parametrize("shown", ["step", "ts"])
def test_a_narrow_card_has_two_ticks_and_no_label_runs_into_the_next(shown: XAxis) -> None:
    time_axis = TimeAxis()
    time_axis.axis = shown
    axis = TimeTicks(time_axis)
    axis.setTickFont(QFont())
    metrics = QFontMetricsF(QFont())
    for low, high in ((1, 220), (0, 12), (0, 1e6), (7e8, 7.0001e8), (3, 40_000)):
        axis.setRange(low, high)
        low, high = axis.range
        for width in range(60, 900, 7):
            found = axis.labelled(width)
            widest = max((metrics.horizontalAdvance(text) for text in texts(found)), default=0.0)
            apart = [(b - a) / (high - low) * width for a, b in pairwise(value for value, _ in found)]
            assert all(pixels > 1.1 * widest for pixels in apart), (low, high, width, found)
            assert len(found) >= 2 or width < 6 * metrics.horizontalAdvance("00,000,000"), (low, high, width, found)
    axis.setRange(1, 220)
    assert len(axis.labelled(170)) in (2, 3) and len(axis.labelled(1600)) <= 25


def test_logarithmic() -> None:
    assert [short(v) for v in log_values(1e-3, 1e2, 8)] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert log_values(0.9, 25, 6) == [1, 2, 5, 10, 20]
    found = values_axis(-3, 2, log=True).labelled(300)
    assert {"0.001", "1", "100"} <= set(texts(found))
    near = values_axis(math.log10(1.4), math.log10(4.9), log=True).labelled(200)
    assert texts(near) == ["2", "3", "4"]


def test_time() -> None:
    assert [spacing_of_time(s) for s in (0.0007, 0.4, 12, 1700, 80_000)] == [0.001, 0.5, 15, 1800, 86_400]
    assert spacing_of_time(86_400 * 80) == 100 * 86_400
    assert [clock(s, 15) for s in multiples(0, 60, 15)] == ["0:00", "0:15", "0:30", "0:45", "1:00"]


def test_clock_and_short() -> None:
    assert clock(-65) == "-1:05"
    assert clock(59.9996, 0.001) == "1:00.000"
    assert [short(v) for v in (0, 0.002, 50, 1000, 20_000, 1.5e6, 2e-6)] == [
        "0", "0.002", "50", "1,000", "20 k", "1.5 M", "2e-6",
    ]  # fmt: skip
