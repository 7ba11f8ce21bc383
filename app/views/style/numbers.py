"""Numbers as a person reads them: three significant digits, a unit, an en dash for what is not known."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtGui import QFont

UNKNOWN: Final = "–"
_THIN_SPACE: Final = "\u202f"


def significant(value: float | None, digits: int = 3) -> str:
    """`value` to three significant digits, never in exponent form between 1e-4 and 1e6."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def count(value: int | None) -> str:
    """A whole number with its thousands marked: 12,480."""
    return UNKNOWN if value is None else f"{value:,}"


def rate(value: float | None, unit: str) -> str:
    """A rate with k or M: "312 k tok/s"."""
    if value is None or not math.isfinite(value):
        return f"{UNKNOWN} {unit}"
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{significant(value / (1e3 if prefix == 'k' else limit))}{_THIN_SPACE}{prefix} {unit}"
    return f"{significant(value)} {unit}"


def gib(value: int | None) -> str:
    """Bytes in GiB (cards are sold by them): "48 GiB", "3.4 GiB"."""
    if value is None:
        return UNKNOWN
    amount = value / 2**30
    return f"{amount:.0f} GiB" if amount >= 10 else f"{amount:.1f} GiB"


def byte_size(value: int | None) -> str:
    """Bytes with the unit that fits: "812 B", "3.4 MB"."""
    if value is None:
        return UNKNOWN
    if value < 1000:
        return f"{value} B"
    amount = float(value)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000.0
        if amount < 999.5:
            return f"{significant(amount)} {unit}"
    return f"{significant(amount / 1000.0)} TB"


def duration(seconds: float | None) -> str:
    """A time span in its two largest units: "1 h 52 m", "48 s"."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return UNKNOWN
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3600:02d} h"


def tabular(font: QFont) -> QFont:
    """`font` with digits of one width, so that a running number does not make its line dance."""
    fixed = QFont(font)
    fixed.setFeature(QFont.Tag("tnum"), 1)
    return fixed
