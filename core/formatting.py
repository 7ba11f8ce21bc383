"""Numbers, sizes and times as text, in the window and on the command line.

An en dash stands for an unknown value. Three significant digits, unless a caller asks for more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

UNKNOWN: Final = "–"
# Less memory has no two digits in GiB.
_LEAST_MIB: Final = 100
_LEAST_TB: Final = 4
# A thin one is not in the code pages of Windows' consoles.
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def number(value: object, digits: int = 3) -> str:
    """A number to `digits` significant digits ("1.83"), never in exponent form between 1e-4 and 1e6."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return UNKNOWN
    if isinstance(value, int) and abs(value) < 10**6:
        return f"{value:,}"
    size = math.floor(math.log10(abs(value))) if value else 0
    if size < -4 or size >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}" if value else "0"


def listed(items: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def count(value: int | None) -> str:
    """A whole number with its thousands marked: "12,480"."""
    return UNKNOWN if value is None else f"{value:,}"


def rate(value: float | None, unit: str) -> str:
    """A rate with k, M or G: "312 k tok/s"."""
    figure, prefix = scaled(value)
    return f"{figure}{_NO_BREAK if prefix else ' '}{prefix}{unit}"


def scaled(value: float | None) -> tuple[str, str]:
    """A large number and its prefix, for the front of a unit: ``("312", "k ")``; three digits, the prefix may be ""."""
    if value is None or not math.isfinite(value):
        return UNKNOWN, ""
    for limit, step, prefix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= limit:
            return number(value / step), f"{prefix} "
    return number(value), ""


def parameters_text(total: int, trained: int) -> str:
    """A model's size: "0.84 M parameters", "124 M parameters, 0.81 M trained", "312 parameters"."""

    def size(value: int) -> str:
        for limit, step, prefix in ((10**9, 1e9, "B"), (10**5, 1e6, "M"), (10**4, 1e3, "k")):
            if value >= limit:
                return f"{number(value / step, 2 if value < step else 3)} {prefix}"
        return count(value)

    text = f"{size(total)} parameters"
    return text if trained == total else f"{text}, {size(trained)} trained"


def memory_size(value: float | None) -> str:
    """Memory in GiB (cards are sold by them), and in MiB where little: "48 GiB", "3.4 GiB", "0.31 GiB", "34 MiB".

    What no machine has is said in TB, where letters count and digits do not: "6.6 TB".
    """
    if value is None:
        return UNKNOWN
    if value >= _LEAST_TB * 10**12:
        return f"{value / 10**12:,.0f} TB" if value >= 10**13 else f"{value / 10**12:.1f} TB"
    amount = value / 2**20
    if amount >= _LEAST_MIB or not amount:
        return f"{gibibytes(value)} GiB"
    return f"{amount:.0f} MiB" if amount >= 10 else f"{amount:.1f} MiB"


def memory_of(used: float | None, total: float | None) -> str:
    """ "3.4 / 24 GiB"."""
    return f"{gibibytes(used)} / {gibibytes(total)} GiB"


def gibibytes(value: float | None) -> str:
    """An amount of memory beside others, in GiB: "48", "3.4", "0.31"."""
    if value is None:
        return UNKNOWN
    amount = value / 2**30
    return f"{amount:,.0f}" if amount >= 10 or not amount else f"{amount:.1f}" if amount >= 1 else f"{amount:.2f}"


def megabytes(size: float) -> str:
    """ "0.34 MB", "1,200 MB"."""
    millions = size / 1e6
    return f"{millions:,.0f} MB" if millions >= 10 else f"{millions:.2g} MB"


def byte_size(value: int | None) -> str:
    """Bytes of files and disks with the unit that fits: "812 bytes", "3.4 MB", "512 MB"."""
    if value is None:
        return UNKNOWN
    for unit, step in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= step:
            amount = value / step
            return f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"
    return f"{value} byte{'' if value == 1 else 's'}"


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


def short_duration(seconds: float) -> str:
    """A time span of a step or less: "12.3 ms", "1.40 s"."""
    return f"{number(1000.0 * seconds)} ms" if seconds < 1 else f"{number(float(seconds))} s"


def moment(unix_s: float) -> str:
    """Local date and time to the minute; a dash for zero."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s)) if unix_s else UNKNOWN


def day_time(unix_s: float, now: float) -> str:
    """Local time of day to the minute; with the weekday or the date unless it is the same day as `now`."""
    at, today = time.localtime(unix_s), time.localtime(now)
    if at[:3] == today[:3]:
        return time.strftime("%H:%M", at)
    return time.strftime("%a %H:%M" if abs(unix_s - now) < 6 * 86_400 else "%Y-%m-%d", at)


def clock(unix_s: object) -> str:
    """Local time of day to the second."""
    return time.strftime("%H:%M:%S", time.localtime(unix_s)) if isinstance(unix_s, int | float) else UNKNOWN


def percent(share: float) -> str:
    """A share of one as "98 %"; "0 %" and "100 %" only where it is exactly that."""
    if not math.isfinite(share):
        return UNKNOWN
    whole = round(100 * share)
    if 0 < share < 1:
        whole = min(99, max(1, whole))
    return f"{whole}{_NO_BREAK}%"
