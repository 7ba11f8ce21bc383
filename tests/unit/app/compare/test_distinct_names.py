"""What tells names apart, whole words of it."""

from __future__ import annotations

import pytest

from app.compare.compare_table_view import distinct_parts

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (
            ["MiniGPT · stdlib · DDP × 2 · 12:17", "MiniGPT · stdlib · DDP × 2 · 12:18"],
            [("MiniGPT · stdlib · DDP × 2 · 12:", "17", ""), ("MiniGPT · stdlib · DDP × 2 · 12:", "18", "")],
        ),
        (
            ["sweep-lr-0.0003-width-256", "sweep-lr-0.0006-width-256"],
            [("sweep-lr-0.", "0003", "-width-256"), ("sweep-lr-0.", "0006", "-width-256")],
        ),
        (["base", "wide"], [("", "base", ""), ("", "wide", "")]),
        (["base-run", "base-runs"], [("base-", "run", ""), ("base-", "runs", "")]),
        (["base ", "base 2"], [("", "base ", ""), ("", "base 2", "")]),
        (["only"], [("", "only", "")]),
        (["same a", "same a"], [("", "same a", ""), ("", "same a", "")]),
        ([], []),
    ],
)
def test_parts(names: list[str], parts: list[tuple[str, str, str]]) -> None:
    assert distinct_parts(names) == parts
    assert ["".join(part) for part in distinct_parts(names)] == names
