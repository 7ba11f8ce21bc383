"""Ticks at round places, with labels that can be told apart."""

from __future__ import annotations

import math
import random

import pytest

from app.views.plots.ticks import clock, linear_ticks, log_ticks, short, time_ticks, whole_ticks


def labels(ticks: list[tuple[float, str]]) -> list[str]:
    return [label for _, label in ticks]


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 10, 5, ["0", "2", "4", "6", "8", "10"]),
        (1.42, 1.69, 5, ["1.45", "1.50", "1.55", "1.60", "1.65"]),
        (-1, 1, 4, ["-1.0", "-0.5", "0", "0.5", "1.0"]),
        (0, 170_000, 4, ["0", "50 k", "100 k", "150 k"]),
        (0, 0.0003, 3, ["0", "0.0001", "0.0002", "0.0003"]),
        (1e-7, 4e-7, 3, ["1e-7", "2e-7", "3e-7", "4e-7"]),
        (5, 5, 4, []),
        (math.nan, 5, 4, []),
        (0, math.inf, 4, []),
    ],
)
def test_linear(low: float, high: float, most: int, expected: list[str]) -> None:
    assert labels(linear_ticks(low, high, most)) == expected


def test_labels_can_be_told_apart_anywhere() -> None:
    chance = random.Random(1)
    for _ in range(500):
        low = chance.choice((0.0, -1.0, 1.0)) * 10 ** chance.uniform(-5, 9)
        high = low + 10 ** chance.uniform(-3, 6) * max(1e-3, abs(low))
        ticks = linear_ticks(low, high, chance.randint(2, 9))
        assert len(set(labels(ticks))) == len(ticks)
        assert len(ticks) <= 20
        assert all(low - 1e-6 * (high - low) <= value <= high + 1e-6 * (high - low) for value, _ in ticks)


def test_whole() -> None:
    assert labels(whole_ticks(0, 3, 10)) == ["0", "1", "2", "3"]
    assert labels(whole_ticks(3.2, 3.9, 5)) == []
    assert labels(whole_ticks(2.5, 3.4, 5)) == ["3"]
    assert labels(whole_ticks(0, 50_000, 5)) == ["0", "10 k", "20 k", "30 k", "40 k", "50 k"]


def test_logarithmic() -> None:
    assert labels(log_ticks(1e-3, 1e2, 8)) == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert labels(log_ticks(0.9, 25, 6)) == ["1", "2", "5", "10", "20"]
    assert labels(log_ticks(1.4, 4.9, 5)) == ["2", "3", "4"]
    assert log_ticks(-1, 5, 5) == []


def test_time() -> None:
    assert labels(time_ticks(0, 60, 4)) == ["0:00", "0:15", "0:30", "0:45", "1:00"]
    assert labels(time_ticks(0, 7300, 3)) == ["0:00", "1:00:00", "2:00:00"]
    assert labels(time_ticks(0, 0.4, 4)) == ["0:00.0", "0:00.1", "0:00.2", "0:00.3", "0:00.4"]
    assert labels(time_ticks(86_400 * 3, 86_400 * 5, 2)) == ["3 d 00:00", "4 d 00:00", "5 d 00:00"]
    assert len(time_ticks(0, 86_400 * 400, 5)) <= 6
    assert time_ticks(5, 5, 3) == []


def test_clock_and_short() -> None:
    assert clock(-65) == "-1:05"
    assert clock(59.9996, 0.001) == "1:00.000"
    assert [short(v) for v in (0, 0.002, 50, 1000, 20_000, 1.5e6, 2e-6)] == [
        "0", "0.002", "50", "1,000", "20 k", "1.5 M", "2e-6",
    ]  # fmt: skip
