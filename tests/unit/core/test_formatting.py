"""Numbers, sizes and times have one spelling, in the window and on the command line."""

from __future__ import annotations

import math

import pytest

from core.formatting import (
    byte_size,
    clock,
    count,
    duration,
    memory_of,
    memory_size,
    moment,
    number,
    parameters_text,
    percent,
    rate,
    short_duration,
)

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (True, "–"),
        ("1", "–"),
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (21494, "21,494"),
        (21494.3, "21,494"),
        (1.8312, "1.83"),
        (-1.8312, "-1.83"),
        (123.4, "123"),
        (0.00123, "0.00123"),
        (1e-7, "1.00e-07"),
        (3e9, "3.00e+09"),
        (10**300, "1.00e+300"),
    ],
)
def test_three_significant_digits(value: object, text: str) -> None:
    assert number(value) == text


def test_more_digits_for_a_loss() -> None:
    assert [number(value, 4) for value in (2.3456, 2.5, 1e-5, None)] == ["2.346", "2.500", "1.000e-05", "–"]


def test_numbers_with_units() -> None:
    assert rate(312_400.0, "tok/s") == "312\u00a0k tok/s" and rate(None, "tok/s") == "– tok/s"
    assert rate(820.0, "tok/s") == "820 tok/s" and rate(3_200_000.0, "tok/s") == "3.20\u00a0M tok/s"
    assert count(12480) == "12,480" and count(None) == "–"
    sizes = (None, 1, 812, 2_500_000, 20_300_000, 512_300_000, 3 * 10**12)
    assert [byte_size(size) for size in sizes] == ["–", "1 byte", "812 bytes", "2.5 MB", "20.3 MB", "512 MB", "3 TB"]


def test_memory_has_one_unit() -> None:
    gib = 2**30
    sizes = (None, 0, gib // 1000, gib // 20, gib // 3, 3 * gib // 2, 48 * gib)
    shown = ["–", "0 GiB", "1.0 MiB", "51 MiB", "0.33 GiB", "1.5 GiB", "48 GiB"]
    assert [memory_size(size) for size in sizes] == shown
    assert memory_of(gib // 3, 24 * gib) == "0.33 / 24 GiB" and memory_of(None, None) == "– / – GiB"


def test_the_size_of_a_model() -> None:
    totals = (312, 12_840, 840_448, 10_788_864, 123_751_680, 174_575_947_776)
    assert [parameters_text(total, total).removesuffix(" parameters") for total in totals] == [
        *("312", "12.8 k", "0.84 M", "10.8 M", "124 M", "175 B"),
    ]
    assert parameters_text(123_751_680, 811_008) == "124 M parameters, 0.81 M trained"


def test_times() -> None:
    spans = (None, -1, 0.4, 48, 65, 3599, 6720, 100_000)
    texts = ["–", "–", "0 s", "48 s", "1 m 05 s", "59 m 59 s", "1 h 52 m", "1 d 03 h"]
    assert [duration(seconds) for seconds in spans] == texts
    assert [short_duration(seconds) for seconds in (0.0005, 0.0123, 1.4, 2)] == [
        "0.500 ms",
        "12.3 ms",
        "1.40 s",
        "2.00 s",
    ]
    assert moment(0) == "–" and len(moment(1e9)) == len("2001-09-09 01:46")
    assert clock("x") == "–" and len(clock(1e9)) == len("01:46:40")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.0004, "1 %"), (0.9999, "99 %"), (0.976, "98 %"), (math.nan, "–")],
)
def test_a_share_is_nothing_or_everything_only_when_it_is(share: float, text: str) -> None:
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == text
