"""Numbers and times as a person reads them."""

from __future__ import annotations

import time

UNKNOWN = "–"


def duration(seconds: float) -> str:
    """``"1 h 52 m"``, ``"3 m 05 s"``, ``"12 s"``."""
    whole = max(0, round(seconds))
    if whole >= 86_400:
        return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 60} m {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def number(value: object) -> str:
    """Three or four significant digits; a dash for what is not known, or not a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNKNOWN
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def count(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return UNKNOWN if value is None else f"{value:,}"


def gibibytes(value: float | None) -> str:
    """Bytes in GiB with one decimal."""
    return UNKNOWN if value is None else f"{value / 2**30:.1f} GiB"


def moment(unix_s: float) -> str:
    """Local date and time to the minute; a dash for zero."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s)) if unix_s else UNKNOWN
