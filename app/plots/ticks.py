"""Ticks of steps, times and logarithms, and the labels of all ticks. Pure arithmetic."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

_TIME_STEPS_S: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
    60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def spacing_of_time(least: float) -> float:
    """Distance of ticks for seconds since a beginning: whole seconds, minutes, hours or days, at least `least`."""
    step = next((s for s in _TIME_STEPS_S if s >= least), None)
    return step if step is not None else nice_step(least / 86_400) * 86_400


def multiples(low: float, high: float, spacing: float) -> list[float]:
    if not (math.isfinite(low) and math.isfinite(high) and spacing > 0):
        return []
    first, last = math.ceil(low / spacing - 1e-9), math.floor(high / spacing + 1e-9)
    return [n * spacing for n in range(first, last + 1)]


def log_values(low: float, high: float, most: int) -> list[float]:
    """Values of at least a decade between two positive bounds: 1, 2 and 5 times powers of ten, or powers alone."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if 3 * math.log10(high / low) <= most else (1,)
    every = max(1, math.ceil((last - first) / max(1, most))) if factors == (1,) else 1
    return [f * 10.0**e for e in range(first, last + 1, every) for f in factors if low <= f * 10.0**e <= high]


def clock(seconds: float, step: float = 1.0) -> str:
    """ "0:42", "1:05:00", "2 d 03:00" since a beginning; fractions when ticks are closer than a second."""
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


def time_of_day(ts: float, step: float = 1.0) -> str:
    """ "14:32", "14:32:05"; "27 Nov" where ticks are days apart or a day begins."""
    at = time.localtime(ts + 1e-6)
    if step >= 86_400 or (at.tm_hour, at.tm_min, at.tm_sec) == (0, 0, 0):
        return f"{at.tm_mday} {_MONTHS[at.tm_mon - 1]}"
    return f"{at.tm_hour:02d}:{at.tm_min:02d}" + (f":{at.tm_sec:02d}" if step < 60 else "")


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


def labels(values: Sequence[float], step: float) -> list[str]:
    """Labels with the same number of decimals, and one prefix for all."""
    largest = max((abs(value) for value in values), default=0.0)
    for limit, prefix in _PREFIXES:
        if largest >= limit and not (prefix == "k" and largest < 1e4):
            decimals = max(0, -math.floor(math.log10(step / limit) + 1e-9))
            return ["0" if abs(v) < step / 2 else f"{v / limit:.{decimals}f} {prefix}" for v in values]
    if 0 < largest < 1e-4 or step < 1e-6:
        return scientific(values, step)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return ["0" if abs(v) < step / 2 else f"{v:,.{decimals}f}" for v in values]


def scientific(values: Sequence[float], step: float) -> list[str]:
    """Labels with a power of ten and the same number of digits."""
    digits = _digits(max((abs(value) for value in values), default=0.0), step)
    return ["0" if abs(v) < step / 2 else f"{v:.{digits}e}".replace("e-0", "e-").replace("e+0", "e") for v in values]


def _digits(largest: float, step: float) -> int:
    return max(0, math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9))
