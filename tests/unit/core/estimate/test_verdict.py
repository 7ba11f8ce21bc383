"""Verdict on a need."""

from __future__ import annotations

import pytest

from core.estimate.verdict import verdict_on


@pytest.mark.parametrize(
    ("need", "free", "complete", "verdict"),
    [
        (85, 100, True, "fits"),
        (86, 100, True, "tight"),
        (100, 100, True, "tight"),
        (101, 100, True, "too_large"),
        (50, 100, False, "unknown"),
        (101, 100, False, "too_large"),
        (50, None, True, "unknown"),
    ],
)
def test_a_need_beside_what_is_free(need: int, free: int | None, complete: bool, verdict: str) -> None:
    assert verdict_on(need, free, complete=complete) == verdict
