"""Numbers as people write them in any country."""

from __future__ import annotations

import math

import pytest

from core.config.numbers import NumberError, read_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-4", 1e-4),
        ("0,001", 0.001),
        ("0.001", 0.001),
        (".5", 0.5),
        (",5", 0.5),
        ("1,5e-4", 1.5e-4),
        ("1.125", 1.125),  # with a point, as every program writes it
        ("1_000", 1000),
        ("1 000", 1000),
        ("1\u202f000", 1000),
        ("1'000", 1000),
        ("1,000,000", 1_000_000),
        ("1.000.000", 1_000_000),
        ("1.000,5", 1000.5),
        ("1,000.5", 1000.5),
        ("2.5k", 2500),
        ("3M", 3_000_000),
        ("-0.5", -0.5),
        ("1e999999999", math.inf),
        (str(2**63 - 1), 2**63 - 1),
        ("9" * 40, int("9" * 40)),
    ],
)
def test_numbers_are_read_as_any_country_writes_them(text: str, number: float) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    ("text", "whole", "instead"),
    [
        ("1.000", True, "Write 1000 or 1."),
        ("1,000", True, "Write 1000 or 1."),
        ("1,000", False, "Write 1000 or 1."),
        ("12,345", False, "Write 12345 or 12.345."),
        ("1,500k", False, "Write 1500 or 1.5."),
    ],
)
def test_a_text_with_two_meanings_has_none(text: str, whole: bool, instead: str) -> None:
    with pytest.raises(NumberError, match="can be read as") as raised:
        read_number(text, whole=whole)
    assert raised.value.instead == instead


@pytest.mark.parametrize(("text", "whole", "number"), [("200.0", True, 200), ("1e3", True, 1000), ("1.50", True, 1.5)])
def test_what_is_not_a_group_of_three_is_a_decimal(text: str, whole: bool, number: float) -> None:
    assert read_number(text, whole=whole) == number


@pytest.mark.parametrize(
    "text", ["", "much", "1..0", "1,00,000", "1.5.5", "1 2", "_1", "1:30", "10 s", "1e", "--1", "٣x"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(NumberError):
        read_number(text)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("90 min", "h", 1.5),
        ("1h30m", "h", 1.5),
        ("1 h 30 min", "s", 5400),
        ("300s", "s", 300),
        ("250 ms", "s", 0.25),
        ("4 GiB", "GiB", 4),
        ("4G", "GiB", 4),
        ("4.294967296 GB", "GiB", 4),
        ("512 MiB", "GiB", 0.5),
        ("5 %", "%", 5),
        ("100 steps", "steps", 100),
        ("1 step", "steps", 1),
        ("2k", "steps", 2000),
        ("5", "GiB", 5),
    ],
)
def test_a_unit_of_the_same_kind_is_converted(text: str, unit: str, number: float) -> None:
    assert read_number(text, unit) == pytest.approx(number)


@pytest.mark.parametrize(
    ("text", "unit"), [("3 parsecs", "steps"), ("5 min", "steps"), ("4 GB", "h"), ("1 h 5", "steps")]
)
def test_a_unit_of_another_kind_is_refused(text: str, unit: str) -> None:
    with pytest.raises(NumberError):
        read_number(text, unit)
