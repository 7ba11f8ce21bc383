"""Verdict on a need beside what is free."""

from __future__ import annotations

from typing import Final, Literal

Verdict = Literal["fits", "tight", "too_large", "unknown"]

COMFORTABLE: Final = 0.85
"""Share of what is free up to which a need fits: an estimate is right within a tenth."""


def verdict_on(need: int, free: int | None, *, complete: bool) -> Verdict:
    """Whether a need fits; one that is not `complete` can only be known to be too large."""
    if free is None:
        return "unknown"
    if need > free:
        return "too_large"
    if not complete:
        return "unknown"
    return "fits" if need <= COMFORTABLE * free else "tight"
