"""Ticks of an axis and their labels. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

Tick = tuple[float, str]
_TIME_STEPS_S: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
    60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def linear_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Round values (1, 2 or 5 times a power of ten) between `low` and `high`, at most about `most`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return []
    step = nice_step((high - low) / (2 * most))
    if _count(low, high, step) > most:
        step = nice_step((high - low) / most)
    first = math.ceil(low / step - 1e-9)
    values = [n * step for n in range(first, first + _count(low, high, step))]
    return list(zip(values, _labels(values, step), strict=True))


def whole_ticks(low: float, high: float, most: int) -> list[Tick]:
    """As `linear_ticks`, whole numbers only."""
    if high - low < 1:
        value = math.ceil(low)
        return [(float(value), f"{value:,}")] if value <= high else []
    ticks = linear_ticks(low, high, max(1, min(most, int(high - low))))
    return [(value, label) for value, label in ticks if abs(value - round(value)) < 1e-6]


def log_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Values between two positive bounds, for a logarithmic axis: powers of ten, or 1-2-5, or linear when near."""
    if not (0 < low < high):
        return []
    decades = math.log10(high / low)
    if decades < 1.0:
        return [tick for tick in linear_ticks(low, high, most) if tick[0] > 0]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if 3 * decades <= most else (1,)
    every = max(1, math.ceil((last - first) / max(1, most))) if factors == (1,) else 1
    values = [f * 10.0**e for e in range(first, last + 1, every) for f in factors if low <= f * 10.0**e <= high]
    return [(value, short(value)) for value in values]


def time_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Ticks for seconds since a beginning: whole seconds, minutes, hours or days."""
    if not high > low:
        return []
    wanted = (high - low) / max(1, most)
    step = next((s for s in _TIME_STEPS_S if s >= wanted), None)
    if step is None:
        step = nice_step(wanted / 86_400) * 86_400
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(n * step, clock(n * step, step)) for n in range(first, last + 1)]


def clock(seconds: float, step: float = 1.0) -> str:
    """Seconds since a beginning as "0:42", "1:05:00", "2 d 03:00"; fractions when ticks are closer than a second."""
    sign, seconds = ("-", -seconds) if seconds < -1e-9 else ("", abs(seconds))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    whole = int(seconds + 0.5 * 10.0**-decimals)
    rest = f"{max(0.0, seconds - whole):.{decimals}f}"[1:] if decimals else ""
    days, hours, minutes, second = whole // 86_400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{sign}{days} d {hours:02d}:{minutes:02d}"
    if hours:
        return f"{sign}{hours}:{minutes:02d}:{second:02d}{rest}"
    return f"{sign}{minutes}:{second:02d}{rest}"


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= least * (1 - 1e-9))


def short(value: float) -> str:
    """A round number in few characters: 0.002, 50, 20 k, 1.5 M, 1e-6."""
    if value == 0:
        return "0"
    size = abs(value)
    for limit, prefix in _PREFIXES:
        if size >= limit and not (prefix == "k" and size < 1e4):
            return f"{value / limit:g} {prefix}"
    return f"{value:.0e}".replace("e-0", "e-") if size < 1e-4 else f"{value:,.10g}"


def _count(low: float, high: float, step: float) -> int:
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


def _labels(values: Sequence[float], step: float) -> list[str]:
    """Labels with the same number of decimals, and one prefix for all."""
    largest = max((abs(value) for value in values), default=0.0)
    for limit, prefix in _PREFIXES:
        if largest >= limit and not (prefix == "k" and largest < 1e4):
            decimals = max(0, -math.floor(math.log10(step / limit) + 1e-9))
            return ["0" if abs(v) < step / 2 else f"{v / limit:.{decimals}f} {prefix}" for v in values]
    if 0 < largest < 1e-4 or step < 1e-6:
        return ["0" if abs(v) < step / 2 else f"{v:.{_digits(largest, step)}e}".replace("e-0", "e-") for v in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return ["0" if abs(v) < step / 2 else f"{v:,.{decimals}f}" for v in values]


def _digits(largest: float, step: float) -> int:
    return max(0, math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9))
